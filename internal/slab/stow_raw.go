// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

//nolint:gosec // hidesRaw makes sure of what is assumed here
package slab

import "unsafe"

// stow leaves the pointers to the elements beyond the end of the slice.
func stow[S any](from S, out []bool) (kept int, done bool) {
	if !hidesRaw {
		return 0, false
	}
	all := (*elements)(unsafe.Pointer(&from)).orig
	list, n := *all, 0
	for i := range list {
		if !out[i] {
			list[n], list[i] = list[i], list[n] // which is removed, or the same
			n++
		}
	}
	*all = list[:n]
	return len(list) - n, true
}

// unstow takes what is beyond the end: unused capacity is nil.
func unstow[S any](to S, n int) (found int) {
	if !hidesRaw {
		return 0
	}
	all := (*elements)(unsafe.Pointer(&to)).orig
	list := (*all)[:cap(*all)]
	end := len(*all)
	for end < min(n, len(list)) && list[end] != nil {
		end++
	}
	found = end - len(*all)
	*all = list[:end]
	return found
}
