// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build purego

package slab

func hide[S any](S, func(i int) bool) (show func(), done bool) { return nil, false }

// Toggles is false: elements are moved.
func Toggles() bool { return false }
