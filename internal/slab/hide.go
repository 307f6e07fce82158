// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

// hidable is a slice of pdata whose elements are allocated one by one.
type hidable[S, E any] interface {
	Len() int
	At(i int) E
	AppendEmpty() E
	EnsureCapacity(n int)
	MoveAndAppendTo(dest S)
	RemoveIf(f func(E) bool)
}

type movable[E any] interface{ MoveTo(dest E) }

// Hide hides elements of a slice for a while. The returned function restores the slice, with the same elements in the
// same order: until then nobody may add to the slice, remove from it or sort it. The caller must own the slice. empty
// makes another slice of its type.
func Hide[S hidable[S, E], E movable[E]](from S, empty func() S, hidden func(i int) bool) (show func()) {
	if show, done := hide(from, hidden); done {
		return show
	}
	return hideByMoving[S, E](from, empty, hidden)
}

// hideByMoving moves the content of the elements that stay, and sets the hidden elements aside.
func hideByMoving[S hidable[S, E], E movable[E]](from S, empty func() S, hidden func(i int) bool) (show func()) {
	aside := empty()
	from.MoveAndAppendTo(aside)
	from.EnsureCapacity(aside.Len())
	var shown []int
	for i := range aside.Len() {
		if !hidden(i) {
			aside.At(i).MoveTo(from.AppendEmpty())
			shown = append(shown, i)
		}
	}
	return func() {
		for j, i := range shown {
			from.At(j).MoveTo(aside.At(i))
		}
		from.RemoveIf(func(E) bool { return true })
		aside.MoveAndAppendTo(from)
	}
}
