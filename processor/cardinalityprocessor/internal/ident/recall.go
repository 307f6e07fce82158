// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package ident

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// Recall remembers what the attributes of the point before came to, by their position. From point to point keys are
// mostly the same, and so are some of the values; to compare a string takes half as long as to hash it, and hardly any
// time where the receiver has made equal strings one.
type Recall []recalled

type recalled struct {
	key   string
	hash  uint64 // of the key
	value string // never empty where sum counts
	sum   uint64 // of key and value
}

// MaxRecalled is how many attributes of a point are remembered.
const MaxRecalled = 32

// attributes is hashAttributes.
func (r *Recall) attributes(h *Hasher, of pcommon.Map) uint64 {
	for n := min(of.Len(), MaxRecalled); len(*r) < n; {
		*r = append(*r, recalled{hash: h.Text("")})
	}
	before := *r
	var sum uint64
	i := 0
	for key, value := range of.All() {
		if i >= len(before) {
			sum += h.Attribute(h.Text(key), value)
			continue
		}
		b := &before[i]
		i++
		if b.key != key {
			*b = recalled{key: key, hash: h.Text(key)}
		}
		s := value.Str()
		if s == "" {
			sum += h.Attribute(b.hash, value)
			continue
		}
		if b.value != s {
			b.value, b.sum = s, h.Attribute(b.hash, value)
		}
		sum += b.sum
	}
	return Mix(sum, uint64(of.Len()))
}

// Forget lets go of the strings.
func (r *Recall) Forget() {
	clear(*r)
	*r = (*r)[:0]
}

// fingerprint finishes a series' identity.
func (r *Recall) fingerprint(h *Hasher, x *Hinted, metric uint64, attributes pcommon.Map) uint64 {
	return Settled(Mix(metric, x.Attributes(r, h, attributes)))
}

// Fingerprints appends one for each point of m, and to marks where stale markers are.
func (r *Recall) Fingerprints(
	h *Hasher, x *Hinted, dst []uint64, marks []int, metric uint64, m pmetric.Metric,
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

func (r *Recall) numbers(
	h *Hasher, x *Hinted, dst []uint64, marks []int, metric uint64, points pmetric.NumberDataPointSlice,
) ([]uint64, []int) {
	for i := range points.Len() {
		dp := points.At(i)
		dst = append(dst, r.fingerprint(h, x, metric, dp.Attributes()))
		if amount.Ends(dp) {
			marks = append(marks, i)
		}
	}
	return dst, marks
}
