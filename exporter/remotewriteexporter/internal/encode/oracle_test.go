// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	contrib "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheusremotewrite"
	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

// The oracle is contrib's translator: the same pdata must result in the same series, except for DIFFERENCES.md.

// canonical returns a text per sample, histogram and exemplar, with the labels and metadata of its series: sorted if
// there is no order, and in one form if there are several.
func canonical(series []promwrite.Series) []string {
	var lines []string
	for _, s := range series {
		labels := slices.Clone(s.Labels)
		slices.SortFunc(labels, func(a, b promwrite.Label) int { return cmp.Compare(a.Name, b.Name) })
		head := fmt.Sprintf("%v type=%d help=%q unit=%q", labels, s.Type, s.Help, s.Unit)
		for _, p := range s.Samples {
			lines = append(lines, fmt.Sprintf("%s sample %x @%d from %d", head, math.Float64bits(p.Value), p.Timestamp, p.StartTimestamp))
		}
		for _, h := range s.Histograms {
			lines = append(lines, head+" histogram "+canonicalHistogram(h))
		}
		for _, x := range s.Exemplars {
			labels := slices.Clone(x.Labels)
			slices.SortFunc(labels, func(a, b promwrite.Label) int { return cmp.Compare(a.Name, b.Name) })
			lines = append(lines, fmt.Sprintf("%s exemplar %v %v @%d", head, labels, x.Value, x.Timestamp))
		}
	}
	slices.Sort(lines)
	return lines
}

func canonicalHistogram(h promwrite.Histogram) string {
	if math.Float64bits(h.Sum) == promwrite.StaleNaN { // everything else is ignored
		return fmt.Sprintf("stale @%d", h.Timestamp)
	}
	buckets := func(spans []promwrite.Span, deltas []int64) string {
		var b strings.Builder
		index, count := int32(0), int64(0)
		for _, s := range spans {
			index += s.Offset
			for range s.Length {
				count += deltas[0]
				deltas = deltas[1:]
				if count != 0 {
					fmt.Fprintf(&b, "%d:%d ", index, count)
				}
				index++
			}
		}
		return b.String()
	}
	return fmt.Sprintf("@%d from %d schema=%d count=%v zero=%v/%g sum=%x +[%s] -[%s] custom=%v hint=%d", h.Timestamp, h.StartTimestamp,
		h.Schema, h.Count, h.ZeroCount, h.ZeroThreshold, math.Float64bits(h.Sum),
		buckets(h.PositiveSpans, h.PositiveDeltas), buckets(h.NegativeSpans, h.NegativeDeltas), h.CustomValues, h.ResetHint)
}

func fromV1(ts *prompb.TimeSeries) promwrite.Series {
	var s promwrite.Series
	for _, l := range ts.Labels {
		s.Labels = append(s.Labels, promwrite.Label{Name: l.Name, Value: l.Value})
	}
	for _, p := range ts.Samples {
		s.Samples = append(s.Samples, promwrite.Sample{Value: p.Value, Timestamp: p.Timestamp})
	}
	for _, x := range ts.Exemplars {
		e := promwrite.Exemplar{Value: x.Value, Timestamp: x.Timestamp}
		for _, l := range x.Labels {
			e.Labels = append(e.Labels, promwrite.Label{Name: l.Name, Value: l.Value})
		}
		s.Exemplars = append(s.Exemplars, e)
	}
	for _, h := range ts.Histograms {
		s.Histograms = append(s.Histograms, promwrite.Histogram{
			Timestamp: h.Timestamp, Sum: h.Sum, Schema: h.Schema, ZeroThreshold: h.ZeroThreshold,
			Count: promwrite.Number{Int: h.GetCountInt()}, ZeroCount: promwrite.Number{Int: h.GetZeroCountInt()},
			PositiveSpans: spansOf(h.PositiveSpans), PositiveDeltas: h.PositiveDeltas,
			NegativeSpans: spansOf(h.NegativeSpans), NegativeDeltas: h.NegativeDeltas,
			CustomValues: h.CustomValues, ResetHint: promwrite.ResetHint(h.ResetHint),
		})
	}
	return s
}

func spansOf(list []prompb.BucketSpan) (out []promwrite.Span) {
	for _, s := range list {
		out = append(out, promwrite.Span{Offset: s.Offset, Length: s.Length})
	}
	return out
}

func fromV2(ts *writev2.TimeSeries, symbols []string) promwrite.Series {
	labels := func(refs []uint32) (out []promwrite.Label) {
		for i := 0; i < len(refs); i += 2 {
			out = append(out, promwrite.Label{Name: symbols[refs[i]], Value: symbols[refs[i+1]]})
		}
		return out
	}
	s := promwrite.Series{
		Labels: labels(ts.LabelsRefs), Type: promwrite.MetricType(ts.Metadata.Type),
		Help: symbols[ts.Metadata.HelpRef], Unit: symbols[ts.Metadata.UnitRef],
	}
	for _, p := range ts.Samples {
		s.Samples = append(s.Samples, promwrite.Sample{Value: p.Value, Timestamp: p.Timestamp, StartTimestamp: p.StartTimestamp})
	}
	for _, x := range ts.Exemplars {
		s.Exemplars = append(s.Exemplars, promwrite.Exemplar{Labels: labels(x.LabelsRefs), Value: x.Value, Timestamp: x.Timestamp})
	}
	spans := func(list []writev2.BucketSpan) (out []promwrite.Span) {
		for _, s := range list {
			out = append(out, promwrite.Span{Offset: s.Offset, Length: s.Length})
		}
		return out
	}
	for _, h := range ts.Histograms {
		s.Histograms = append(s.Histograms, promwrite.Histogram{
			Timestamp: h.Timestamp, StartTimestamp: h.StartTimestamp, Sum: h.Sum, Schema: h.Schema, ZeroThreshold: h.ZeroThreshold,
			Count: promwrite.Number{Int: h.GetCountInt()}, ZeroCount: promwrite.Number{Int: h.GetZeroCountInt()},
			PositiveSpans: spans(h.PositiveSpans), PositiveDeltas: h.PositiveDeltas,
			NegativeSpans: spans(h.NegativeSpans), NegativeDeltas: h.NegativeDeltas,
			CustomValues: h.CustomValues, ResetHint: promwrite.ResetHint(h.ResetHint),
		})
	}
	return s
}

// decodePrometheus decodes blocks with Prometheus' own generated code.
func decodePrometheus(t testing.TB, blocks []block.Block) (series []promwrite.Series) {
	for _, b := range blocks {
		raw, err := b.Raw()
		require.NoError(t, err)
		if b.Version == promwrite.V1 {
			var r prompb.WriteRequest
			require.NoError(t, r.Unmarshal(raw))
			for i := range r.Timeseries {
				series = append(series, fromV1(&r.Timeseries[i]))
			}
			continue
		}
		var r writev2.Request
		require.NoError(t, r.Unmarshal(raw))
		for i := range r.Timeseries {
			series = append(series, fromV2(&r.Timeseries[i], r.Symbols))
		}
	}
	return series
}

func oracle(md pmetric.Metrics, f block.Format, s contrib.Settings) (series []promwrite.Series) {
	if f.Version == promwrite.V1 {
		list, _ := contrib.FromMetrics(md, s)
		for _, ts := range list {
			series = append(series, fromV1(ts))
		}
		return series
	}
	list, symbols, _ := contrib.FromMetricsV2(md, s)
	for _, ts := range list {
		series = append(series, fromV2(ts, symbols.Symbols()))
	}
	return series
}

func TestSameAsContrib(t *testing.T) {
	racetest.Sequential(t)
	for _, strategy := range []otlptranslator.TranslationStrategyOption{
		otlptranslator.UnderscoreEscapingWithSuffixes, otlptranslator.UnderscoreEscapingWithoutSuffixes,
		otlptranslator.NoUTF8EscapingWithSuffixes, otlptranslator.NoTranslation,
	} {
		for _, f := range []block.Format{v2Zstd, v1Snappy} {
			if f.Version == promwrite.V1 && !strategy.ShouldEscape() {
				continue
			}
			for _, custom := range []string{"", "custom", "custom and classic"} {
				if custom != "" && f.Version == promwrite.V1 {
					continue // 1.0 has no custom buckets
				}
				name := fmt.Sprintf("%s/%s/%s/%s", strategy, f.Version, f.Compression, custom)
				t.Run(name, func(t *testing.T) {
					for seed := range uint64(6) {
						sameAsContrib(t, seed, strategy, f, custom)
					}
				})
			}
		}
	}
}

func sameAsContrib(t *testing.T, seed uint64, strategy otlptranslator.TranslationStrategyOption, f block.Format, custom string) {
	settings := contrib.Settings{
		TranslationStrategy: string(strategy), ExternalLabels: map[string]string{"cluster": "here", "region": "north"},
		ConvertExplicitHistogramsToNHCB: custom != "", KeepClassicHistograms: custom == "custom and classic",
	}
	if seed%3 == 0 {
		settings.Namespace = "ns"
	}
	settings.DisableScopeInfo = seed%4 == 0
	settings.DisableTargetInfo = seed%5 == 0
	e, d := newEncoder(t, func(c *Config) {
		c.Names.Strategy, c.Names.Namespace, c.Names.ExternalLabels = strategy, settings.Namespace, settings.ExternalLabels
		c.Cache.CustomBuckets, c.Cache.KeepClassic = settings.ConvertExplicitHistogramsToNHCB, settings.KeepClassicHistograms
		c.Names.StrictLabels = true // contrib 0.159's default
		c.StartTimestamps = false
		c.Cache.TargetInfo = !settings.DisableTargetInfo
		c.TargetInfoInterval = 0 // contrib sends it each time
		c.Cache.ScopeLabels = cache.ScopeLabelsOn
		if settings.DisableScopeInfo {
			c.Cache.ScopeLabels = cache.ScopeLabelsOff
		}
		c.Shards = 1 + int(seed%3)
		c.MaxSamples = 100
	})
	g := generator{r: rand.New(rand.NewPCG(seed, 1)), version: f.Version, custom: custom != ""}
	// The first time everything is new, the second time known, the third time half of it.
	work := g.workload()
	for round := range 3 {
		if round == 2 {
			work = g.mutate(work)
		}
		md := work.metrics(&g, round)
		want := canonical(oracle(md, f, settings))
		require.NoError(t, e.Add(md, ""))
		blocks := flushAll(e, f)
		ours, metadata := decode(t, blocks)
		require.Equal(t, want, canonical(ours), "seed %d round %d", seed, round)
		require.Equal(t, want, canonical(decodePrometheus(t, blocks)), "seed %d round %d", seed, round)
		if f.Version == promwrite.V1 && round == 0 {
			requireMetadata(t, md, settings, ours, metadata)
		}
	}
	require.Zero(t, d.counts[loss.Duplicate])
	require.NotZero(t, d.counts[loss.Temporality])
}

// requireMetadata checks the list in 1.0: an entry for each family with series, the same as contrib's.
func requireMetadata(t *testing.T, md pmetric.Metrics, s contrib.Settings, series []promwrite.Series, metadata []promwrite.Metadata) {
	list, _ := contrib.OtelMetricsToMetadata(md, s)
	want := map[promwrite.Metadata]bool{}
	for _, m := range list {
		want[promwrite.Metadata{Type: promwrite.MetricType(m.Type), Family: m.MetricFamilyName, Help: m.Help, Unit: m.Unit}] = true
	}
	families := map[string]bool{}
	for _, m := range metadata {
		if !strings.HasSuffix(m.Family, "target_info") {
			require.True(t, want[m], "%+v", m)
		}
		families[m.Family] = true
	}
	for _, s := range series {
		i := slices.IndexFunc(s.Labels, func(l promwrite.Label) bool { return l.Name == "__name__" })
		name := s.Labels[i].Value
		require.True(t, families[name] || families[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"), "_sum")], name)
	}
}
