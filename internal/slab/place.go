// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// placeable is a slice of pdata's, of elements that are allocated one by one.
type placeable[E any] interface {
	Len() int
	At(i int) E
	AppendEmpty() E
}

// The elements that can be placed, each in a slice of its own kind.
type placed interface {
	pmetric.ResourceMetrics | pmetric.ScopeMetrics | pmetric.Metric | pmetric.NumberDataPoint
}

// Places reports whether elements that exist already can be put into slices, and lists of attributes be shared: for that pdata's types
// have to be as they are known. Where it is false, Place, Empty and Share do nothing and must not be called.
func Places() bool { return places }

// Place appends an element that exists already, with all it holds. It stays what it was to whoever has made it, and may be
// placed again elsewhere.
func Place[S placeable[E], E placed](to S, e E) { place(to, e) }

// Empty takes all elements out of a slice, and keeps its room. What they hold stays as it is.
func Empty[S placeable[E], E placed](s S) { empty(s) }

// Share gives a map the list of another one, which nobody may change from then on. Whoever adds to either makes a list of his
// own by that.
func Share(into, from pcommon.Map) { share(into, from) }

// PlaceNumbers appends points that exist already, as Place does.
func PlaceNumbers(to pmetric.NumberDataPointSlice, all []*Number) { placeNumbers(to, all) }
