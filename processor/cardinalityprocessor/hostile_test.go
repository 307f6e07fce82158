// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"encoding/binary"
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// gaugeWith returns a point of m with the attributes that put sets.
func gaugeWith(put func(pcommon.Map)) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("m")
	put(m.SetEmptyGauge().DataPoints().AppendEmpty().Attributes())
	return md
}

// nest wraps a value into the given number of lists.
func nest(value pcommon.Value, depth int) pcommon.Value {
	for range depth {
		value = value.SetEmptySlice().AppendEmpty()
	}
	return value
}

// TestNoValueGetsSeriesPastTheLimit: different values must have different fingerprints, otherwise the second series of
// a fingerprint passes without a place.
func TestNoValueGetsSeriesPastTheLimit(t *testing.T) {
	const limit, many = 10, 200
	for name, put := range map[string]func(pcommon.Value, int){
		"bytes that make a word which cancels what was before": func(v pcommon.Value, i int) {
			b := binary.BigEndian.AppendUint64(nil, uint64(i))
			v.SetEmptyBytes().FromRaw(binary.BigEndian.AppendUint64(b, bits.RotateLeft64(ident.MixB, 32)))
		},
		"the same the other way round": func(v pcommon.Value, i int) {
			b := binary.LittleEndian.AppendUint64(nil, uint64(i))
			v.SetEmptyBytes().FromRaw(binary.LittleEndian.AppendUint64(b, bits.RotateLeft64(ident.MixB, 32)))
		},
		"lists in lists": func(v pcommon.Value, i int) { nest(v, 17).SetInt(int64(i)) },
		"very many":      func(v pcommon.Value, i int) { nest(v, 1000).SetInt(int64(i)) },
		"maps in maps": func(v pcommon.Value, i int) {
			for range 40 {
				v = v.SetEmptyMap().PutEmpty("k")
			}
			v.SetInt(int64(i))
		},
		"maps in one list": func(v pcommon.Value, i int) {
			pairs := v.SetEmptySlice()
			for bit := range 8 { // says in which of two maps the value is
				pairs.AppendEmpty().SetEmptyMap().PutEmptyMap([]string{"a", "b"}[i>>bit&1]).PutBool("x", true)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Memory.MaxSeries = limit })
			passed := 0
			for i := range many {
				passed += r.consume(gaugeWith(func(a pcommon.Map) { put(a.PutEmpty("id"), i) })).DataPointCount()
			}
			require.Equal(t, limit, passed)
			require.Equal(t, int64(limit), r.gauge("series", policy.RuleTotal))
		})
	}
}

// TestAnyTemporalityIsTold: a temporality is a number of 32 bits, and none is mistaken for a flag with another meaning.
func TestAnyTemporalityIsTold(t *testing.T) {
	seen := map[uint64]bool{}
	n := 0
	for _, monotonic := range []bool{false, true} {
		for shift := range 33 {
			for _, temporality := range []int32{int32(1 << shift), -int32(1 << shift)} {
				if temporality == 0 || shift == 31 && temporality > 0 {
					continue
				}
				m := pmetric.NewMetric()
				m.SetEmptySum().SetIsMonotonic(monotonic)
				m.Sum().SetAggregationTemporality(pmetric.AggregationTemporality(temporality))
				if kind := amount.KindOf(m); !seen[kind] {
					seen[kind] = true
					n++
				}
			}
		}
	}
	require.Equal(t, 2*63, n)
}

// TestSeriesThatCollidedWithoutAKey has a histogram and a sum with the same fingerprint, found within a minute when
// fingerprints had no key. Added to one output, they stopped the process, or left the rules locked.
func TestSeriesThatCollidedWithoutAKey(t *testing.T) {
	r := newRig(t, overflowing(1))
	r.send(point{name: "other"})
	start := r.clock
	h := r.timed(point{name: "h", kind: histogram, attrs: attrs{"id": int64(-4136847596088662306)}}, start, start.Add(time.Second), 3)
	s := r.timed(point{name: "s", kind: cumulative, attrs: attrs{"id": int64(-9041727319348327755)}}, start, start.Add(2*time.Second), 7)
	s.ResourceMetrics().MoveAndAppendTo(h.ResourceMetrics())
	require.NotPanics(t, func() { r.consume(h) })
	require.True(t, r.Rules.TryLock())
	r.Rules.Unlock()
	require.Equal(t, 2, r.flushed(time.Minute).DataPointCount())
}

func TestRulesAreFreeAfterAPanic(t *testing.T) {
	r := newRig(t, overflowing(1))
	now := r.Now
	r.Now = func() time.Time { panic("of something unforeseen") }
	require.Panics(t, func() { r.consume(metricsOf(point{name: "m"})) })
	r.Now = now
	require.True(t, r.Rules.TryLock())
	r.Rules.Unlock()
}
