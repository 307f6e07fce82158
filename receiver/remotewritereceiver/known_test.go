// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/memo"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/admission"
)

func sized(maxDecodedBodySize int) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.MaxDecodedBodySize = maxDecodedBodySize
	return cfg
}

// anyRequest returns a random request with few names and values, so that the same series are repeated, with labels in
// any order.
func anyRequest(random *rand.Rand, version promwrite.Version) []byte {
	req := newV2()
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	rare := random.IntN(2) == 0 // half of the requests have slow parts
	for range random.IntN(60) {
		labels := []string{"__name__", pick("a_total", "b", "c_bucket", "c_sum", "d", "target_info")}
		for _, name := range []string{"code", "le", "mode", "otel_scope_name", "otel_scope_x", "__replica__", "cluster"} {
			if random.IntN(3) == 0 {
				labels = append(labels, name, pick("", "1", "2", "north", strings.Repeat("long", 1+random.IntN(2)*600)))
			}
		}
		if random.IntN(5) > 0 {
			labels = append(labels, "instance", pick("", "h1:1", "h2:1", "h3:1"), "job", pick("node", "ns/node", "", "a/b/c"))
		}
		switch n := random.IntN(20); {
		case !rare && n < 3:
		case n == 0:
			labels = append(labels, pick("job", "code", "instance", ""), pick("again", ""))
		case n == 1:
			labels = append(labels, "bad", "\xff")
		case n == 2:
			labels = append(labels, "job", "\xff\xff")
		case n == 3:
			labels[1] = ""
		}
		if random.IntN(10) == 0 {
			random.Shuffle(len(labels)/2, func(i, j int) {
				labels[2*i], labels[2*j] = labels[2*j], labels[2*i]
				labels[2*i+1], labels[2*j+1] = labels[2*j+1], labels[2*i+1]
			})
		}
		var ts writev2.TimeSeries
		for range random.IntN(4) {
			v := random.NormFloat64()
			if random.IntN(8) == 0 {
				v = math.Float64frombits(promwrite.StaleNaN)
			}
			ts.Samples = append(ts.Samples, writev2.Sample{Value: v, Timestamp: random.Int64N(1e12), StartTimestamp: random.Int64N(2) * 1e9})
		}
		if rare && random.IntN(10) == 0 {
			ts.Histograms = append(ts.Histograms, writev2.Histogram{Timestamp: 5000, Sum: random.Float64(), Count: &writev2.Histogram_CountInt{CountInt: 0}})
		}
		if rare && random.IntN(5) == 0 {
			ts.Exemplars = append(ts.Exemplars, writev2.Exemplar{LabelsRefs: req.refs("user", pick("u1", "u2")), Value: 1, Timestamp: 900})
		}
		req.series(ts, writev2.Metadata_MetricType(random.IntN(9)), pick("", "Help.", "Other help.", strings.Repeat("help", 700)),
			pick("", "seconds"), labels...)
	}
	var body []byte
	var err error
	if version == promwrite.V1 {
		body, err = older(&req.Request).Marshal()
	} else {
		body, err = req.Marshal()
	}
	if err != nil {
		panic(err)
	}
	return body
}

// older returns a 2.0 request as one of 1.0.
func older(req *writev2.Request) *prompb.WriteRequest {
	labels := func(refs []uint32) (all []prompb.Label) {
		for i := 0; i < len(refs); i += 2 {
			all = append(all, prompb.Label{Name: req.Symbols[refs[i]], Value: req.Symbols[refs[i+1]]})
		}
		return all
	}
	out := &prompb.WriteRequest{}
	for _, ts := range req.Timeseries {
		s := prompb.TimeSeries{Labels: labels(ts.LabelsRefs)}
		for _, p := range ts.Samples {
			s.Samples = append(s.Samples, prompb.Sample{Value: p.Value, Timestamp: p.Timestamp})
		}
		for _, e := range ts.Exemplars {
			s.Exemplars = append(s.Exemplars, prompb.Exemplar{Labels: labels(e.LabelsRefs), Value: e.Value, Timestamp: e.Timestamp})
		}
		for _, h := range ts.Histograms {
			s.Histograms = append(s.Histograms, prompb.Histogram{Timestamp: h.Timestamp, Sum: h.Sum, Count: &prompb.Histogram_CountInt{}})
		}
		out.Timeseries = append(out.Timeseries, s)
	}
	return out
}

// TestWhatIsKnownChangesNothing: requests have the same result whether or not their series are known, and whether or
// not memory is reused, with poison or without, and metrics do not refer to the body.
func TestWhatIsKnownChangesNothing(t *testing.T) {
	racetest.Sequential(t)
	for _, c := range []struct {
		name             string
		reused, poisoned bool
		bytes            int
	}{
		{"new metrics", false, false, 8 << 20},
		{"new metrics, no room", false, false, 30_000},
		{"reused", true, false, 8 << 20},
		{"reused, no room", true, false, 30_000},
		{"poisoned", true, true, 8 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.reused && !slab.Places() {
				t.Skip("metrics look otherwise in this build")
			}
			t.Cleanup(handback.Poison(c.poisoned))
			cfg := sized(1 << 20)
			cfg.ScopesFromLabels = true
			known := newKnown(c.bytes, c.reused && !c.poisoned)
			w, err := newWorker(cfg, known)
			require.NoError(t, err)
			tree := newTree(c.reused)
			random := rand.New(rand.NewPCG(1, 2))
			now := time.Now()
			for i := range 400 {
				version := []promwrite.Version{promwrite.V1, promwrite.V2}[random.IntN(2)]
				body := anyRequest(random, version)
				oracle, err := newWorker(cfg, newKnown(0, false))
				require.NoError(t, err)
				held := admission.New(64 << 20).Held()
				want, err := oracle.work(t.Context(), version, promwrite.Identity, []byte(string(body)), &held, nil, newTree(false))
				require.NoError(t, err)
				held.Done()
				if !c.reused {
					tree = newTree(false)
				}
				if i%4 == 0 && len(body) > 0 { // a truncated body is refused as a whole, and leaves nothing behind
					if _, err := w.work(t.Context(), version, promwrite.Identity, slices.Clone(body[:len(body)-1]), &held, nil, tree); err != nil && c.reused {
						require.True(t, tree.takeBack())
					} else if !c.reused || err == nil {
						tree = newTree(c.reused)
					}
					held.Done()
				}
				got, err := w.work(t.Context(), version, promwrite.Identity, body, &held, nil, tree)
				require.NoError(t, err)
				held.Done()
				for j := range body {
					body[j] = 'X'
				}
				require.Equal(t, describe(want.metrics), describe(got.metrics), "request %d", i)
				said := func(b batch) string { return fmt.Sprint(b.written, b.rejects.counts, b.rejects.err()) }
				require.Equal(t, said(want), said(got))
				if c.reused {
					ruinStructure(random, got.metrics)
					require.True(t, tree.takeBack())
				}
				if i%50 == 0 {
					now = now.Add(memo.Generation)
					known.age(now)
				}
			}
			bytes, unkept := known.stats()
			require.LessOrEqual(t, bytes, c.bytes)
			require.Equal(t, c.bytes < 100_000, unkept > 0)
		})
	}
}

// ruinStructure removes and adds parts, like a processor that releases metrics may.
func ruinStructure(random *rand.Rand, md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Type() == pmetric.MetricTypeGauge {
					m.Gauge().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool { return random.IntN(3) == 0 })
					m.Gauge().DataPoints().AppendEmpty().SetIntValue(1)
				}
			}
			sm.Metrics().RemoveIf(func(pmetric.Metric) bool { return random.IntN(3) == 0 })
			sm.Metrics().AppendEmpty().SetName("added")
		}
	}
	md.ResourceMetrics().RemoveIf(func(pmetric.ResourceMetrics) bool { return random.IntN(3) == 0 })
}

// A processor that promised not to change shared attributes, but does, is detected.
func TestChangedAttributesAreFound(t *testing.T) {
	if !slab.Places() {
		t.Skip("metrics look otherwise in this build")
	}
	body, err := nodes(2, 10).Marshal()
	require.NoError(t, err)
	for name, change := range map[string]func(pcommon.Map){
		"added":   func(m pcommon.Map) { m.PutStr("more", "x") },
		"removed": func(m pcommon.Map) { m.Remove("cpu") },
	} {
		w, err := newWorker(sized(1<<20), newKnown(1<<20, true))
		require.NoError(t, err)
		held := admission.New(64 << 20).Held()
		tree := newTree(true)
		b, err := w.work(t.Context(), promwrite.V2, promwrite.Identity, body, &held, nil, tree)
		require.NoError(t, err)
		change(b.metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(3).Attributes())
		require.False(t, tree.takeBack(), name)
	}
}

// Series of a thousand similar targets are stored once.
func TestTargetsAlikeShareWhatIsKnown(t *testing.T) {
	k := newKnown(8<<20, true)
	w, err := newWorker(sized(8<<20), k)
	require.NoError(t, err)
	held := admission.New(256 << 20).Held()
	body, err := nodes(50, 200).Marshal()
	require.NoError(t, err)
	_, err = w.work(t.Context(), promwrite.V2, promwrite.Identity, body, &held, nil, newTree(slab.Places()))
	require.NoError(t, err)
	sets, _, unkept := k.sets.Stats()
	targets, _, _ := k.targets.Stats()
	families, _, _ := k.families.Stats()
	require.Equal(t, []int{200, 50, 20, 0}, []int{sets, targets, families, int(unkept)})
}

// TestAgingGoesOnWhenTheClockIsSetBack: what was known last when the clock was ahead is aged all the same.
func TestAgingGoesOnWhenTheClockIsSetBack(t *testing.T) {
	r := &remoteWriteReceiver{}
	r.known.Store(newKnown(1<<20, false))
	ahead := time.Now().Add(time.Hour).UnixNano()
	r.aged.Store(ahead)
	r.age()
	require.Less(t, r.aged.Load(), ahead)
}
