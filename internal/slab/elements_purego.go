// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build purego

package slab

const putsBack = false

type keptElements struct{}

func keepElements[S any](*keptElements, S) {}

func (keptElements) putBack() (removed int, whole bool) { return 0, false }

func (keptElements) forget() {}
