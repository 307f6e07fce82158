// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// placeable is a slice of pdata whose elements are allocated one by one.
type placeable[E any] interface {
	Len() int
	At(i int) E
	AppendEmpty() E
}

// The elements that can be placed, each in a slice of its own type.
type placed interface {
	pmetric.ResourceMetrics | pmetric.ScopeMetrics | pmetric.Metric | pmetric.NumberDataPoint
}

// Places reports whether existing elements can be put into slices, and lists of attributes be shared: pdata's types
// must have the known layout. If it returns false, Place, Empty and Share do nothing and must not be called.
func Places() bool { return places }

// Place appends an existing element with all of its content. It stays valid for whoever made it, and may be placed
// again elsewhere.
func Place[S placeable[E], E placed](to S, e E) { place(to, e) }

// Empty removes all elements from a slice, and keeps its capacity. Their content is not changed.
func Empty[S placeable[E], E placed](s S) { empty(s) }

// Share gives a map the list of another one, which nobody may change from then on. Adding to either map gives it a list
// of its own.
func Share(into, from pcommon.Map) { share(into, from) }

// PlaceNumbers appends existing points, as Place does.
func PlaceNumbers(to pmetric.NumberDataPointSlice, all []*Number) { placeNumbers(to, all) }
