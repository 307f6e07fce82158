// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

//nolint:gosec // places makes sure of what is assumed here
package slab

import (
	"reflect"
	"slices"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// element is the assumed layout of all elements of such slices.
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

func metricsIn(of pmetric.MetricSlice) *[]*Metric {
	return (*[]*Metric)(unsafe.Pointer((*metricSlice)(unsafe.Pointer(&of)).orig))
}

func placeMetrics(to pmetric.MetricSlice, metrics []*Metric) {
	all := metricsIn(to)
	*all = append(*all, metrics...)
}

func placeMetric(to pmetric.MetricSlice, m *Metric) {
	all := metricsIn(to)
	*all = append(*all, m)
}

// replaceMetric replaces a metric by others, if it is there.
func replaceMetric(in pmetric.MetricSlice, m *Metric, by []*Metric) {
	all := metricsIn(in)
	if i := slices.Index(*all, m); i >= 0 {
		*all = slices.Replace(*all, i, i+1, by...)
	}
}

func placeNumbers(to pmetric.NumberDataPointSlice, points []*Number) {
	all := (*[]*Number)(unsafe.Pointer((*numberDataPointSlice)(unsafe.Pointer(&to)).orig))
	*all = append(*all, points...)
}

func empty[S any](s S) {
	all := (*elements)(unsafe.Pointer(&s)).orig
	*all = (*all)[:0]
}

func share(into, from pcommon.Map) {
	list := *attributesOf(from)
	*attributesOf(into) = list[:len(list):len(list)]
}
