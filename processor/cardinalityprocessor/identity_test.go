// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/alloctest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/siphash"
)

// testHasher has the same key each time.
func testHasher() *ident.Hasher {
	h := ident.NewHasher(siphash.NewKey([siphash.KeySize]byte{2, 2, 3}))
	return &h
}

// fingerprintsOf returns the fingerprints of all points.
func fingerprintsOf(md pmetric.Metrics) []uint64 {
	h := testHasher()
	var out []uint64
	for _, rm := range md.ResourceMetrics().All() {
		resource := h.Attributes(rm.Resource().Attributes())
		for _, sm := range rm.ScopeMetrics().All() {
			scope := h.Scope(resource, sm.Scope())
			for _, m := range sm.Metrics().All() {
				out, _ = new(ident.Recall).Fingerprints(h, &ident.Hinted{}, out, nil, h.Metric(scope, m), m)
			}
		}
	}
	return out
}

// fingerprint returns the expected fingerprint, whatever the previous points were.
func fingerprint(metric uint64, attributes pcommon.Map) uint64 {
	return ident.Settled(ident.Mix(metric, testHasher().Attributes(attributes)))
}

func TestFingerprintTellsSeriesApart(t *testing.T) {
	base := point{resource: attrs{"a": "b"}, scope: "s", name: "n", unit: "u", kind: cumulative, attrs: attrs{"k": "v", "l": "w"}}
	variants := []point{base}
	add := func(change func(*point)) {
		p := base
		change(&p)
		variants = append(variants, p)
	}
	add(func(p *point) { p.resource = attrs{"a": "c"} })
	add(func(p *point) { p.resource = attrs{"ab": ""} })
	add(func(p *point) { p.resource = nil })
	add(func(p *point) { p.scope = "n"; p.name = "s" })
	add(func(p *point) { p.name = "u"; p.unit = "n" })
	add(func(p *point) { p.unit = "" })
	for k := range kinds {
		if k != base.kind {
			add(func(p *point) { p.kind = k })
		}
	}
	for _, a := range []attrs{
		nil,
		{"k": "v"},
		{"k": "w", "l": "v"},
		{"v": "k", "l": "w"},
		{"k": "vl", "": "w"},
		{"kv": "", "l": "w"},
		{"k": "v", "l": "w", "m": ""},
		{"k": "v", "l": nil},
		{"k": "1"},
		{"k": int64(1)},
		{"k": 1.0},
		{"k": true},
		{"k": false},
		{"k": []byte("1")},
		{"k": []byte("11111111")},
		{"k": []byte("111111110")},
		{"k": []byte{0}},
		{"k": []byte{}},
		{"k": []any{}},
		{"k": []any{"1"}},
		{"k": []any{"1", "2"}},
		{"k": []any{"2", "1"}},
		{"k": []any{int64(1), int64(2)}},
		{"k": map[string]any{}},
		{"k": map[string]any{"1": "2"}},
		{"k": map[string]any{"1": map[string]any{"1": "2"}}},
	} {
		add(func(p *point) { p.attrs = a })
	}
	seen := map[uint64]int{}
	for i, fp := range fingerprintsOf(metricsOf(variants...)) {
		other, dup := seen[fp]
		require.False(t, dup, "%+v and %+v", variants[i], variants[max(other, 0)])
		seen[fp] = i
	}
}

func TestFingerprintOfEachTemporality(t *testing.T) {
	seen := map[uint64]bool{}
	for _, temporality := range []pmetric.AggregationTemporality{
		pmetric.AggregationTemporalityUnspecified, pmetric.AggregationTemporalityDelta, pmetric.AggregationTemporalityCumulative,
	} {
		for k := range 3 {
			m := pmetric.NewMetric()
			switch k {
			case 0:
				m.SetEmptySum().SetAggregationTemporality(temporality)
			case 1:
				m.SetEmptyHistogram().SetAggregationTemporality(temporality)
			default:
				m.SetEmptyExponentialHistogram().SetAggregationTemporality(temporality)
			}
			seen[testHasher().Metric(1, m)] = true
		}
	}
	require.Len(t, seen, 9)
}

func TestFingerprintDoesNotDependOnOrder(t *testing.T) {
	a, b := pcommon.NewMap(), pcommon.NewMap()
	for i := range 20 {
		a.PutInt(strconv.Itoa(i), int64(i))
		b.PutInt(strconv.Itoa(19-i), int64(19-i))
	}
	require.Equal(t, fingerprint(1, a), fingerprint(1, b))
}

func TestFingerprintsOfManySeriesDiffer(t *testing.T) {
	seen := make(map[uint64]struct{}, 300_000)
	a := attributesOf(attrs{"x": int64(0), "y": "0"})
	x, _ := a.Get("x")
	y, _ := a.Get("y")
	for i := range 500 {
		x.SetInt(int64(i))
		for j := range 600 {
			y.SetStr(strconv.Itoa(j))
			seen[fingerprint(7, a)] = struct{}{}
		}
	}
	require.Len(t, seen, 300_000)
}

func TestFingerprintDoesNotAllocate(t *testing.T) {
	m := metricsOf(point{kind: gauge, attrs: attrs{
		"a": "b", "i": int64(1), "f": 1.5, "t": true, "x": []byte("0123456789"), "s": []any{"a"}, "m": map[string]any{"a": "b"},
	}}).ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
	var fps []uint64
	var r ident.Recall
	h := testHasher()
	require.Zero(t, alloctest.PerRun(func() { fps, _ = r.Fingerprints(h, &ident.Hinted{}, fps[:0], nil, 1, m) }))
}

func FuzzFingerprint(f *testing.F) {
	f.Add("k", "v", "l", "w", int64(1))
	f.Add("", "", "\xff", "\x00", int64(-1))
	f.Fuzz(func(t *testing.T, k, v, l, w string, n int64) {
		if k == l {
			return
		}
		build := func(put ...func(pcommon.Map)) uint64 {
			m := pcommon.NewMap()
			for _, p := range put {
				p(m)
			}
			return fingerprint(1, m)
		}
		kv := func(m pcommon.Map) { m.PutStr(k, v) }
		lw := func(m pcommon.Map) { m.PutStr(l, w) }
		require.Equal(t, build(kv, lw), build(lw, kv))
		all := map[uint64]bool{
			build(): true, build(kv): true, build(lw): true, build(kv, lw): true,
			build(func(m pcommon.Map) { m.PutInt(k, n) }):                        true,
			build(func(m pcommon.Map) { m.PutDouble(k, float64(n)) }):            true,
			build(func(m pcommon.Map) { m.PutEmptyBytes(k).FromRaw([]byte(v)) }): true,
		}
		require.Len(t, all, 7)
	})
}
