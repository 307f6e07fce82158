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

// elements is what all slices of pdata's are taken for whose elements are allocated one by one.
type elements struct {
	orig  *[]*opaque
	state *opaque
}

// hidesRaw reports whether the slices of metrics are what they are taken for.
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

// hide puts a shorter list of elements in the place of the one that is there.
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
	return func() { *all = was }, true
}
