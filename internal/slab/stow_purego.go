// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build purego

package slab

func stow[S any](S, []bool) (kept int, done bool) { return 0, false }

func unstow[S any](S, int) int { return 0 }
