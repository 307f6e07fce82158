// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package ident

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// Recall remembers the hashes of the attributes of recent points. Consecutive points usually have the same keys, and
// some of the same values. If the receiver uses one string for all that are equal, that shows by comparing addresses,
// in hardly any time; otherwise it takes half as long as hashing.
type Recall struct {
	before []recalled     // of the last point, by position
	values *[spots]valued // of earlier points, by address; nil until there are any
}

type recalled struct {
	key   string
	hash  uint64    // of the key
	value string    // never empty if sum is valid
	spot  slab.Spot // address of the value, if known
	sum   uint64    // of key and value
}

// valued is the hash of a value.
type valued struct {
	spot slab.Spot
	key  uint64 // hash of its key
	sum  uint64
}

const (
	// MaxRecalled limits the attributes of a point that are remembered.
	MaxRecalled = 32
	// spots is the number of values that are remembered. If there are more, most occur only once in a batch.
	spotBits = 8
	spots    = 1 << spotBits
)

// attributes is Hasher.Attributes.
func (r *Recall) attributes(h *Hasher, of pcommon.Map) uint64 {
	if slab.Readable() {
		if hash, ok := r.raw(h, slab.Attributes(of)); ok { // fast path
			return hash
		}
	}
	before := r.room(h, of.Len())
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
			b.value, b.spot, b.sum = s, slab.Spot{}, h.Attribute(b.hash, value)
		}
		sum += b.sum
	}
	return Mix(sum, uint64(of.Len()))
}

// room returns entries for n attributes, or as many as are remembered.
func (r *Recall) room(h *Hasher, n int) []recalled {
	n = min(n, MaxRecalled)
	for len(r.before) < n {
		r.before = append(r.before, recalled{hash: h.Text("")})
	}
	return r.before[:n]
}

// raw is attributes for memory that can be read directly. It returns false if anything is unusual.
func (r *Recall) raw(h *Hasher, of []slab.Attribute) (hash uint64, ok bool) {
	if len(of) > MaxRecalled {
		return 0, false
	}
	before := r.before
	if len(before) < len(of) {
		before = r.room(h, len(of))
	}
	before = before[:len(of)]
	var sum uint64
	for i := range of {
		a, b := &of[i], &before[i]
		key, ok := a.Key()
		if !ok {
			return 0, false
		}
		if !slab.Same(b.key, key) {
			*b = recalled{key: key, hash: h.Text(key)}
		}
		spot := a.Spot()
		if spot != (slab.Spot{}) && (spot == b.spot || b.value != "" && slab.Same(spot.Str(), b.value)) { // fast path
			sum += b.sum
			continue
		}
		one, ok := r.value(h, b, a, spot)
		if !ok {
			return 0, false
		}
		sum += one
	}
	return Mix(sum, uint64(len(of))), true
}

// value returns the hash of a value at another address than the last one.
func (r *Recall) value(h *Hasher, b *recalled, a *slab.Attribute, spot slab.Spot) (sum uint64, ok bool) {
	if spot == (slab.Spot{}) {
		bits, kind := a.Scalar()
		switch kind {
		case slab.Int:
			return Mix(b.hash, h.Key.Word(bits)^tagInt), true
		case slab.Double:
			return Mix(b.hash, h.Key.Word(bits)^tagDouble), true
		case slab.Bool:
			return Mix(b.hash, h.bools[bits]), true
		default:
			return 0, false
		}
	}
	s := spot.Str()
	if s == "" {
		return Mix(b.hash, h.Text("")^tagString), true
	}
	if r.values == nil {
		r.values = new([spots]valued)
	}
	v := &r.values[(spot.Number()*mixA^b.hash)>>(64-spotBits)]
	if v.spot != spot || v.key != b.hash {
		*v = valued{spot: spot, key: b.hash, sum: Mix(b.hash, h.Text(s)^tagString)}
	}
	b.value, b.spot, b.sum = s, spot, v.sum
	return b.sum, true
}

// Forget drops the strings.
func (r *Recall) Forget() {
	clear(r.before)
	r.before = r.before[:0]
	if r.values != nil {
		clear(r.values[:])
	}
}

// fingerprint completes a series' fingerprint.
func (r *Recall) fingerprint(h *Hasher, x *Hinted, metric uint64, attributes pcommon.Map) uint64 {
	return Settled(Mix(metric, x.Attributes(r, h, attributes)))
}

// Fingerprints appends the fingerprint of each point of m, and to marks the indexes of stale markers.
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
	if x.Hints == nil && slab.Readable() { // fast path
		return r.rawNumbers(h, dst, marks, metric, points)
	}
	for i := range points.Len() {
		dp := points.At(i)
		dst = append(dst, r.fingerprint(h, x, metric, dp.Attributes()))
		if amount.Ends(dp) {
			marks = append(marks, i)
		}
	}
	return dst, marks
}

// rawNumbers is numbers for points whose memory can be read directly, without hints.
func (r *Recall) rawNumbers(h *Hasher, dst []uint64, marks []int, metric uint64, points pmetric.NumberDataPointSlice) ([]uint64, []int) {
	for i, dp := range slab.Numbers(points) {
		hash, ok := r.raw(h, dp.Attributes())
		if !ok {
			hash = r.attributes(h, points.At(i).Attributes())
		}
		dst = append(dst, Settled(Mix(metric, hash)))
		if endsRaw(dp) {
			marks = append(marks, i)
		}
	}
	return dst, marks
}
