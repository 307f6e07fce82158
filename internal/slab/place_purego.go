// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build purego

package slab

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const places = false

func place[S, E any](S, E) {}

func placeMetrics(pmetric.MetricSlice, []*Metric) {}

func placeMetric(pmetric.MetricSlice, *Metric) {}

func replaceMetric(pmetric.MetricSlice, *Metric, []*Metric) {}

func placeNumbers(pmetric.NumberDataPointSlice, []*Number) {}

func empty[S any](S) {}

func share(pcommon.Map, pcommon.Map) {}
