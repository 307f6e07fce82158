// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// recall remembers what the attributes of the point before came to, by their position. From point to point keys are
// mostly the same, and so are some of the values; to compare a string takes half as long as to hash it, and hardly any
// time where the receiver has made equal strings one.
type recall []recalled

type recalled struct {
	key   string
	hash  uint64 // of the key
	value string // never empty where sum counts
	sum   uint64 // of key and value
}

// maxRecalled is how many attributes of a point are remembered.
const maxRecalled = 32

// attributes is hashAttributes.
func (r *recall) attributes(h *hasher, of pcommon.Map) uint64 {
	for n := min(of.Len(), maxRecalled); len(*r) < n; {
		*r = append(*r, recalled{hash: h.text("")})
	}
	before := *r
	var sum uint64
	i := 0
	for key, value := range of.All() {
		if i >= len(before) {
			sum += h.attribute(h.text(key), value)
			continue
		}
		b := &before[i]
		i++
		if b.key != key {
			*b = recalled{key: key, hash: h.text(key)}
		}
		s := value.Str()
		if s == "" {
			sum += h.attribute(b.hash, value)
			continue
		}
		if b.value != s {
			b.value, b.sum = s, h.attribute(b.hash, value)
		}
		sum += b.sum
	}
	return mix(sum, uint64(of.Len()))
}

// forget lets go of the strings.
func (r *recall) forget() {
	clear(*r)
	*r = (*r)[:0]
}

// fingerprint finishes a series' identity.
func (r *recall) fingerprint(h *hasher, x *hinted, metric uint64, attributes pcommon.Map) uint64 {
	return settled(mix(metric, x.attributes(r, h, attributes)))
}

// fingerprints appends one for each point of m, and to marks where stale markers are.
func (r *recall) fingerprints(
	h *hasher, x *hinted, dst []uint64, marks []int, metric uint64, m pmetric.Metric,
) ([]uint64, []int) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return r.numbers(h, x, dst, marks, metric, m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		return r.numbers(h, x, dst, marks, metric, m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		points := m.Histogram().DataPoints()
		for i := range points.Len() {
			dp := points.At(i)
			dst = append(dst, r.fingerprint(h, x, metric, dp.Attributes()))
			if dp.Flags().NoRecordedValue() {
				marks = append(marks, i)
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		points := m.ExponentialHistogram().DataPoints()
		for i := range points.Len() {
			dp := points.At(i)
			dst = append(dst, r.fingerprint(h, x, metric, dp.Attributes()))
			if dp.Flags().NoRecordedValue() {
				marks = append(marks, i)
			}
		}
	case pmetric.MetricTypeSummary:
		points := m.Summary().DataPoints()
		for i := range points.Len() {
			dp := points.At(i)
			dst = append(dst, r.fingerprint(h, x, metric, dp.Attributes()))
			if dp.Flags().NoRecordedValue() {
				marks = append(marks, i)
			}
		}
	default:
	}
	return dst, marks
}

func (r *recall) numbers(
	h *hasher, x *hinted, dst []uint64, marks []int, metric uint64, points pmetric.NumberDataPointSlice,
) ([]uint64, []int) {
	for i := range points.Len() {
		dp := points.At(i)
		dst = append(dst, r.fingerprint(h, x, metric, dp.Attributes()))
		if ends(dp) {
			marks = append(marks, i)
		}
	}
	return dst, marks
}
