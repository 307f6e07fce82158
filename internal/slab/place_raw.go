// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

//nolint:gosec // places makes sure of what is assumed here
package slab

import (
	"reflect"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// element is what all elements of such slices are taken for.
type element struct{ orig, state *opaque }

var places = hidesRaw && areSingle(
	reflect.TypeFor[pmetric.ResourceMetrics](), reflect.TypeFor[pmetric.ScopeMetrics](), reflect.TypeFor[pmetric.Metric](),
	reflect.TypeFor[pmetric.NumberDataPoint]())

func areSingle(all ...reflect.Type) bool {
	for _, theirs := range all {
		if !alike(reflect.TypeFor[element](), theirs) {
			return false
		}
	}
	return true
}

func place[S, E any](to S, e E) {
	all := (*elements)(unsafe.Pointer(&to)).orig
	*all = append(*all, (*element)(unsafe.Pointer(&e)).orig)
}

func placeMetrics(to pmetric.MetricSlice, metrics []*Metric) {
	all := (*[]*Metric)(unsafe.Pointer((*metricSlice)(unsafe.Pointer(&to)).orig))
	*all = append(*all, metrics...)
}

func empty[S any](s S) {
	all := (*elements)(unsafe.Pointer(&s)).orig
	*all = (*all)[:0]
}

func share(into, from pcommon.Map) {
	list := *attributesOf(from)
	*attributesOf(into) = list[:len(list):len(list)]
}
