// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package inorder sorts lists that are shown now and then. The standard library's slices.SortFunc is compiled for each type, some 14 kB each. That is worth
// it if sorting must be fast; elsewhere it made up a hundredth of the agent's file.
package inorder

import "sort"

// Sort sorts as slices.SortStableFunc does.
func Sort[T any](all []T, compare func(a, b T) int) {
	sort.Stable(&by[T]{all, compare})
}

type by[T any] struct {
	all     []T
	compare func(a, b T) int
}

func (b *by[T]) Len() int           { return len(b.all) }
func (b *by[T]) Less(i, j int) bool { return b.compare(b.all[i], b.all[j]) < 0 }
func (b *by[T]) Swap(i, j int)      { b.all[i], b.all[j] = b.all[j], b.all[i] }
