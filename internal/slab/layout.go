// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

//nolint:gosec // look makes sure of what is assumed here
package slab

import (
	"reflect"
	"strings"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The assumed layout of pdata's types. Fields have pdata's names, in the same order.
type (
	opaque struct{} // not used here

	attributeMap struct {
		orig  *[]keyValue
		state *opaque
	}
	keyValue struct {
		value       anyValue
		key         string
		keyStrindex int32
	}
	value struct {
		orig  *anyValue
		state *opaque
	}
	anyValue    struct{ value any } // a pointer to one of these four, or to something else
	stringValue struct{ stringValue string }
	intValue    struct{ intValue int64 }
	boolValue   struct{ boolValue bool }
	doubleValue struct{ doubleValue float64 }

	numberDataPointSlice struct {
		orig  *[]*numberDataPoint
		state *opaque
	}
	numberPoint struct {
		orig  *numberDataPoint
		state *opaque
	}
	numberDataPoint struct {
		value             any // a pointer to one of these two
		attributes        []keyValue
		exemplars         []opaque
		startTimeUnixNano uint64
		timeUnixNano      uint64
		flags             uint32
	}
	asInt    struct{ asInt int64 }
	asDouble struct{ asDouble float64 }

	metricSlice struct {
		orig  *[]*metric
		state *opaque
	}
	metricPoint struct {
		orig  *metric
		state *opaque
	}
	metric struct {
		name        string
		description string
		unit        string
		data        any // a pointer to one of these two, or to something else
		metadata    []keyValue
	}
	metricGauge struct{ gauge *gauge }
	metricSum   struct{ sum *sum }
	gauge       struct{ dataPoints []*numberDataPoint }
	sum         struct {
		dataPoints             []*numberDataPoint
		aggregationTemporality int32
		isMonotonic            bool
	}

	metricHistogram struct{ histogram *histogram }
	metricSummary   struct{ summary *summary }
	histogram       struct {
		dataPoints             []*histogramDataPoint
		aggregationTemporality int32
	}
	summary            struct{ dataPoints []*summaryDataPoint }
	histogramDataPoint struct {
		attributes                             []keyValue
		bucketCounts                           []uint64
		explicitBounds                         []float64
		exemplars                              []opaque
		startTimeUnixNano, timeUnixNano, count uint64
		sum, min, max                          float64
		metadata                               [1]uint64
		flags                                  uint32
	}
	summaryDataPoint struct {
		attributes                             []keyValue
		quantileValues                         []*summaryDataPointValueAtQuantile
		startTimeUnixNano, timeUnixNano, count uint64
		sum                                    float64
		flags                                  uint32
	}
	summaryDataPointValueAtQuantile struct{ quantile, value float64 }
	histogramPoint                  struct {
		orig  *histogramDataPoint
		state *opaque
	}
	summaryPoint struct {
		orig  *summaryDataPoint
		state *opaque
	}

	exemplarSlice struct {
		orig  *[]exemplar
		state *opaque
	}
	exemplarPoint struct {
		orig  *exemplar
		state *opaque
	}
	exemplar struct {
		value              any // a pointer to what is like asInt or asDouble
		filteredAttributes []keyValue
		timeUnixNano       uint64
		traceID            [16]byte
		spanID             [8]byte
	}
)

// kinds are the types that values have, as an interface holds them.
var kinds struct{ str, integer, boolean, double, asInt, asDouble, gauge, sum, histogram, summary, exemplar unsafe.Pointer }

// known reports whether pdata's types have the assumed layout.
var known = look()

func look() bool {
	if !alike(reflect.TypeFor[attributeMap](), reflect.TypeFor[pcommon.Map]()) ||
		!alike(reflect.TypeFor[value](), reflect.TypeFor[pcommon.Value]()) ||
		!alike(reflect.TypeFor[numberDataPointSlice](), reflect.TypeFor[pmetric.NumberDataPointSlice]()) ||
		!alike(reflect.TypeFor[numberPoint](), reflect.TypeFor[pmetric.NumberDataPoint]()) ||
		!alike(reflect.TypeFor[metricSlice](), reflect.TypeFor[pmetric.MetricSlice]()) ||
		!alike(reflect.TypeFor[metricPoint](), reflect.TypeFor[pmetric.Metric]()) ||
		!alike(reflect.TypeFor[histogramPoint](), reflect.TypeFor[pmetric.HistogramDataPoint]()) ||
		!alike(reflect.TypeFor[summaryPoint](), reflect.TypeFor[pmetric.SummaryDataPoint]()) ||
		!alike(reflect.TypeFor[exemplarPoint](), reflect.TypeFor[pmetric.Exemplar]()) ||
		!alike(reflect.TypeFor[exemplarSlice](), reflect.TypeFor[pmetric.ExemplarSlice]()) ||
		!areElements(reflect.TypeFor[pmetric.HistogramDataPointSlice](), reflect.TypeFor[pmetric.SummaryDataPointSlice]()) {
		return false
	}
	attributes, number := pcommon.NewMap(), pmetric.NewNumberDataPoint()
	attributes.PutStr("", "")
	attributes.PutInt("i", 0)
	attributes.PutBool("b", false)
	attributes.PutDouble("d", 0)
	all := *attributesOf(attributes)
	ok := kindOf[stringValue](all[0].value.value, &kinds.str) && kindOf[intValue](all[1].value.value, &kinds.integer) &&
		kindOf[boolValue](all[2].value.value, &kinds.boolean) && kindOf[doubleValue](all[3].value.value, &kinds.double)
	number.SetIntValue(0)
	ok = ok && kindOf[asInt](pointOf(number).value, &kinds.asInt)
	number.SetDoubleValue(0)
	ok = ok && kindOf[asDouble](pointOf(number).value, &kinds.asDouble)
	one := pmetric.NewMetric()
	one.SetEmptyGauge()
	ok = ok && kindOf[metricGauge](metricOf(one).data, &kinds.gauge)
	one.SetEmptySum()
	ok = ok && kindOf[metricSum](metricOf(one).data, &kinds.sum)
	x := pmetric.NewExemplar()
	x.SetDoubleValue(0)
	ok = ok && kindOf[asDouble]((*exemplarPoint)(unsafe.Pointer(&x)).orig.value, &kinds.exemplar)
	one.SetEmptyHistogram()
	ok = ok && kindOf[metricHistogram](metricOf(one).data, &kinds.histogram)
	one.SetEmptySummary()
	return ok && kindOf[metricSummary](metricOf(one).data, &kinds.summary)
}

// kindOf records the type of a value if it is a pointer to a type laid out like T.
func kindOf[T any](value any, kind *unsafe.Pointer) bool {
	*kind = (*boxed)(unsafe.Pointer(&value)).kind
	return value != nil && alike(reflect.TypeFor[*T](), reflect.TypeOf(value))
}

// alike reports whether two types have the same fields at the same offsets.
func alike(ours, theirs reflect.Type) bool {
	if ours == reflect.TypeFor[opaque]() {
		return true
	}
	if ours.Kind() != theirs.Kind() || ours.Size() != theirs.Size() {
		return false
	}
	switch ours.Kind() {
	case reflect.Struct:
		if ours.NumField() != theirs.NumField() {
			return false
		}
		for i := range ours.NumField() {
			a, b := ours.Field(i), theirs.Field(i)
			if !strings.EqualFold(a.Name, b.Name) || a.Offset != b.Offset || !alike(a.Type, b.Type) {
				return false
			}
		}
	case reflect.Pointer, reflect.Slice:
		return alike(ours.Elem(), theirs.Elem())
	case reflect.Interface:
		return ours == theirs
	default:
	}
	return true
}

// boxed is the representation of an empty interface.
type boxed struct{ kind, data unsafe.Pointer }

func box(kind, data unsafe.Pointer) (value any) {
	*(*boxed)(unsafe.Pointer(&value)) = boxed{kind, data}
	return value
}

func attributesOf(m pcommon.Map) *[]keyValue { return (*attributeMap)(unsafe.Pointer(&m)).orig }

func valueOf(v pcommon.Value) *anyValue { return (*value)(unsafe.Pointer(&v)).orig }

func pointOf(p pmetric.NumberDataPoint) *numberDataPoint {
	return (*numberPoint)(unsafe.Pointer(&p)).orig
}

func metricOf(m pmetric.Metric) *metric { return (*metricPoint)(unsafe.Pointer(&m)).orig }
