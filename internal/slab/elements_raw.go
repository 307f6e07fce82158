// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

//nolint:gosec // hidesRaw makes sure of what is assumed here
package slab

import (
	"reflect"
	"unsafe"
)

var putsBack = hidesRaw

// keptElements are copied by their types, whatever these contain: the layouts are not known for all of them.
type keptElements struct {
	slices []keptSlice
	all    []*opaque // elements of one slice after the other
	kinds  []keptKind
}

type keptSlice struct {
	at    *[]*opaque
	end   int // of its elements
	kind  int
	first int // index of the copy of its first element
}

// keptKind has copies of the elements of one type.
type keptKind struct {
	of     reflect.Type
	copies reflect.Value // a slice of them
}

func keepElements[S any](l *keptElements, s S) {
	if putsBack {
		l.keep((*elements)(unsafe.Pointer(&s)).orig, reflect.TypeFor[S]())
	}
}

func (l *keptElements) keep(at *[]*opaque, slice reflect.Type) {
	of := slice.Field(0).Type.Elem().Elem().Elem() // slice has a pointer to a list of pointers
	kind := l.kindOf(of)
	k := &l.kinds[kind]
	first := k.copies.Len()
	k.copies.Grow(len(*at))
	k.copies.SetLen(first + len(*at))
	for i, e := range *at {
		k.copies.Index(first + i).Set(k.content(e))
	}
	l.all = append(l.all, *at...)
	l.slices = append(l.slices, keptSlice{at, len(l.all), kind, first})
}

func (l *keptElements) kindOf(of reflect.Type) int {
	for i := range l.kinds {
		if l.kinds[i].of == of {
			return i
		}
	}
	l.kinds = append(l.kinds, keptKind{of, reflect.New(reflect.SliceOf(of)).Elem()})
	return len(l.kinds) - 1
}

func (k *keptKind) content(of *opaque) reflect.Value {
	return reflect.NewAt(k.of, unsafe.Pointer(of)).Elem()
}

func (l *keptElements) putBack() (removed int, whole bool) {
	from := 0
	for _, s := range l.slices {
		had, list := l.all[from:s.end], *s.at
		from = s.end
		k, next := &l.kinds[s.kind], 0
		for i, e := range had {
			if next < len(list) && list[next] == e {
				next++
				continue
			}
			content := k.content(e)
			if !content.IsZero() {
				return removed, false
			}
			content.Set(k.copies.Index(s.first + i))
		}
		for _, e := range list[next:] { // nil where the slice was restored with the element that it is in
			if e != nil {
				return removed, false
			}
		}
		if next < len(had) {
			*s.at = append((*s.at)[:0], had...)
			removed += len(had) - next
		}
	}
	return removed, true
}

func (l *keptElements) forget() {
	clear(l.all)
	for i := range l.kinds {
		l.kinds[i].copies.Clear()
		l.kinds[i].copies.SetLen(0)
	}
	l.slices, l.all = l.slices[:0], l.all[:0]
}
