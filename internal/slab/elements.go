// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

// Elements are the elements of slices, with copies of their content as far as that is in the element itself: references
// to lists of attributes and to other slices, not what is in those. PutBack restores what was removed. The caller must
// own the data.
type Elements struct{ kept keptElements }

// PutsBack reports whether removed elements can be restored: pdata's types must have the known layout. If not, nothing
// is kept, and PutBack must not be called.
func PutsBack() bool { return putsBack }

// KeepElements records the elements of a slice. A slice that is within elements of another one is recorded after it.
func KeepElements[S interface{ Len() int }](l *Elements, s S) { keepElements(&l.kept, s) }

// PutBack restores all slices, and the content of the elements that were removed: pdata empties these. It returns how many
// there were. whole is false if there is anything else in a slice, or in another order, or if a missing element is not
// empty: somebody may have it.
func (l *Elements) PutBack() (removed int, whole bool) { return l.kept.putBack() }

// Forget forgets all slices.
func (l *Elements) Forget() { l.kept.forget() }
