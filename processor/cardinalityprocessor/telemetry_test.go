// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// sumOf adds up the points that have all of the attributes.
func sumOf(m metricdata.Metrics, want attrs) int64 {
	var points []metricdata.DataPoint[int64]
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		points = data.DataPoints
	case metricdata.Gauge[int64]:
		points = data.DataPoints
	}
	var sum int64
	for _, p := range points {
		if hasAll(p.Attributes, want) {
			sum += p.Value
		}
	}
	return sum
}

func hasAll(set attribute.Set, want attrs) bool {
	for k, v := range want {
		if got, ok := set.Value(attribute.Key(k)); !ok || got.String() != fmt.Sprint(v) {
			return false
		}
	}
	return true
}
