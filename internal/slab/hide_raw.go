// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

//nolint:gosec // hidesRaw makes sure of what is assumed here
package slab

import (
	"reflect"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// elements is the assumed layout of all slices of pdata whose elements are allocated one by one.
type elements struct {
	orig  *[]*opaque
	state *opaque
}

// hidesRaw reports whether the slices of metrics have that layout.
var hidesRaw = known && areElements(
	reflect.TypeFor[pmetric.ResourceMetricsSlice](), reflect.TypeFor[pmetric.ScopeMetricsSlice](), reflect.TypeFor[pmetric.MetricSlice](),
	reflect.TypeFor[pmetric.NumberDataPointSlice](), reflect.TypeFor[pmetric.HistogramDataPointSlice](),
	reflect.TypeFor[pmetric.ExponentialHistogramDataPointSlice](), reflect.TypeFor[pmetric.SummaryDataPointSlice]())

func areElements(all ...reflect.Type) bool {
	for _, theirs := range all {
		if !alike(reflect.TypeFor[elements](), theirs) {
			return false
		}
	}
	return true
}

// hide replaces the list of elements by a shorter one.
func hide[S any](from S, hidden func(i int) bool) (show func(), done bool) {
	if !hidesRaw {
		return nil, false
	}
	all := (*elements)(unsafe.Pointer(&from)).orig
	was := *all
	shown := make([]*opaque, 0, len(was))
	for i, e := range was {
		if !hidden(i) {
			shown = append(shown, e)
		}
	}
	*all = shown
	return func() { *all, was = was, *all }, true
}

// Toggles reports whether what Hide returns hides again when it is called a second time, and so on.
func Toggles() bool { return hidesRaw }
