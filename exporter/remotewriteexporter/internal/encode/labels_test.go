// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

func TestLabelsAndTheirPrecedence(t *testing.T) {
	f := func(name string, change func(*Config), resource map[string]any, attrs []string, want string) {
		t.Helper()
		md := gauge("g", 1, epoch, attrs...)
		require.NoError(t, md.ResourceMetrics().At(0).Resource().Attributes().FromRaw(resource))
		scope := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope()
		scope.SetName("lib")
		scope.SetVersion("1")
		scope.Attributes().PutStr("empty", "")
		scope.Attributes().PutStr("team", "a")
		for _, format := range formats {
			series, _ := sent(t, format, func(c *Config) {
				c.Cache.ScopeLabels = cache.ScopeLabelsOff
				if change != nil {
					change(c)
				}
			}, md)
			require.Len(t, series, 1, name)
			assert.Equal(t, want, labelsOf(series[0]), name)
		}
	}
	promote := func(c *Config) {
		c.Cache.PromoteResourceAttributes, c.Cache.ExcludeResourceAttributes = []string{"k8s.*", "a?b", "zone"}, []string{"*.secret"}
	}
	service := map[string]any{"service.name": "api", "service.instance.id": "i1"}

	f("job and instance override", nil, service, []string{"job", "x", "instance", "y", "z", "1"},
		`__name__="g",instance="i1",job="api",z="1",`)
	f("empty namespace adds no slash", nil, map[string]any{"service.name": "api", "service.namespace": ""}, nil, `__name__="g",job="api",`)
	f("namespace", nil, map[string]any{"service.name": "api", "service.namespace": "shop"}, nil, `__name__="g",job="shop/api",`)
	f("no identity", nil, nil, []string{"job", "own"}, `__name__="g",job="own",`)
	f("external gives way", func(c *Config) { c.Names.ExternalLabels = map[string]string{"a": "ext", "job": "ext", "b.c": "ext"} }, service,
		[]string{"a", "own"}, `__name__="g",a="own",b_c="ext",instance="i1",job="api",`)
	f("empty values are no labels", nil, nil, []string{"a", ""}, `__name__="g",`)
	f("name cannot be taken", nil, nil, []string{"__name__", "other"}, `__name__="g",`)
	f("clash is joined in the order of keys", nil, nil, []string{"a_b", "2", "a.b", "1"}, `__name__="g",a_b="1;2",`)
	f("clash of equals is one", nil, nil, []string{"a_b", "1", "a.b", "1"}, `__name__="g",a_b="1",`)
	f("promoted", promote, map[string]any{"k8s.pod.name": "p", "k8s.secret": "s", "a.b": "1", "other": "o", "service.name": "api"}, nil,
		`__name__="g",a_b="1",job="api",k8s_pod_name="p",`)
	f("point wins", promote, map[string]any{"zone": "resource"}, []string{"zone", "point"}, `__name__="g",zone="point",`)
	f("resource wins", func(c *Config) { promote(c); c.Cache.ResourceWins = true }, map[string]any{"zone": "resource"}, []string{"zone", "point"},
		`__name__="g",zone="resource",`)
	f("scope", func(c *Config) { c.Cache.ScopeLabels = cache.ScopeLabelsAuto }, nil, []string{"otel_scope_name", "own"},
		`__name__="g",otel_scope_name="lib",otel_scope_team="a",otel_scope_version="1",`)
}

func TestScrapedScopeIsNoLabel(t *testing.T) {
	md := page(0, 1, epoch)
	series, _ := sent(t, v2Zstd, nil, md)
	assert.NotContains(t, labelsOf(series[0]), "otel_scope_name")
	series, _ = sent(t, v2Zstd, func(c *Config) { c.Cache.ScopeLabels = cache.ScopeLabelsOn }, md)
	assert.Contains(t, labelsOf(series[0]), `otel_scope_name="github.com/godwit-otel/godwit/receiver/fastprometheusreceiver"`)
}

func TestScrapedNamesAreKept(t *testing.T) {
	f := func(name, scope, want string, change func(*Config)) {
		t.Helper()
		md := gauge(name, 1, epoch)
		sm := md.ResourceMetrics().At(0).ScopeMetrics().At(0)
		sm.Scope().SetName(scope)
		m := sm.Metrics().At(0)
		m.SetUnit("s")
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		addPoint(m.Sum().DataPoints(), 1, epoch)
		series, _ := sent(t, v2Zstd, func(c *Config) {
			c.Names.ScrapedNames, c.Cache.ScopeLabels = true, cache.ScopeLabelsOff
			if change != nil {
				change(c)
			}
		}, md)
		require.Len(t, series, 1)
		assert.Equal(t, want, series[0].Labels[0].Value)
	}
	const receiver = "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"
	f("total_requests__x", receiver, "total_requests__x", nil)
	f("total_requests__x", "sdk", "requests_x_seconds_total", nil)
	f("total.requests", receiver, "requests_seconds_total", nil) // invalid without translation
	f("total_requests__x", receiver, "requests_x_seconds_total", func(c *Config) { c.Names.ScrapedNames = false })
}

// An info metric is named by its family, "build", although it was scraped as "build_info".
func TestScrapedInfosHaveTheirSuffix(t *testing.T) {
	f := func(name, typ string, scraped bool, want string) {
		t.Helper()
		md := gauge(name, 1, epoch)
		sm := md.ResourceMetrics().At(0).ScopeMetrics().At(0)
		sm.Scope().SetName("github.com/godwit-otel/godwit/receiver/fastprometheusreceiver")
		m := sm.Metrics().At(0)
		m.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		m.Metadata().PutStr("prometheus.type", typ)
		addPoint(m.Sum().DataPoints(), 1, epoch)
		series, _ := sent(t, v2Zstd, func(c *Config) { c.Names.ScrapedNames, c.Cache.ScopeLabels = scraped, cache.ScopeLabelsOff }, md)
		require.Len(t, series, 1)
		assert.Equal(t, want, series[0].Labels[0].Value)
	}
	f("build", "info", true, "build_info")
	f("build_info", "info", true, "build_info")
	f("state", "stateset", true, "state")
	f("build", "info", false, "build") // like in contrib
}

func TestLabelSanitisingIsAChoice(t *testing.T) {
	f := func(strict bool, key, want string) {
		t.Helper()
		series, _ := sent(t, v2Zstd, func(c *Config) { c.Names.StrictLabels = strict }, gauge("g", 1, epoch, key, "v"))
		require.Len(t, series, 1)
		assert.Equal(t, want, series[0].Labels[1].Name)
	}
	keyed := func(key string) {
		t.Helper()
		series, _ := sent(t, v2Zstd, func(c *Config) { c.Names.KeyedLabels = true }, gauge("g", 1, epoch, key, "v"))
		prometheus := otlptranslator.LabelNamer{UnderscoreLabelSanitization: true, PreserveMultipleUnderscores: true} // its defaults
		want, err := prometheus.Build(key)
		require.NoError(t, err)
		assert.True(t, slices.ContainsFunc(series[0].Labels, func(l promwrite.Label) bool { return l.Name == want }), "%s: %v", want, series[0].Labels)
	}
	for _, key := range []string{"a..b", "_a", "__a__b", "1a", "a", "_1", "é", "_.a"} {
		keyed(key)
	}
	f(true, "a..b", "a_b")
	f(false, "a..b", "a__b")
	f(true, "_a", "key_a")
	f(false, "_a", "_a")
	f(true, "1a", "key_1a")
	f(false, "1a", "key_1a")
}

// TestTypeAndUnitAreLabels, as in Prometheus' own translation.
func TestTypeAndUnitAreLabels(t *testing.T) {
	typed := func(c *Config) {
		c.Names.TypeAndUnitLabels, c.Names.Strategy = true, otlptranslator.UnderscoreEscapingWithoutSuffixes
	}
	f := func(change func(pmetric.Metric), want ...string) {
		t.Helper()
		md := gauge("bird.weight", 1, epoch, "kind", "godwit")
		change(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0))
		series, _ := sent(t, v2Zstd, typed, md)
		var got []string
		for _, s := range series {
			got = append(got, labelsOf(s))
		}
		assert.ElementsMatch(t, want, got)
	}
	f(func(m pmetric.Metric) { m.SetUnit("g") }, `__name__="bird_weight",__type__="gauge",__unit__="grams",kind="godwit",`)
	f(func(pmetric.Metric) {}, `__name__="bird_weight",__type__="gauge",kind="godwit",`)
	f(func(m pmetric.Metric) { m.Metadata().PutStr("prometheus.type", "unknown") }, `__name__="bird_weight",kind="godwit",`)
	f(func(m pmetric.Metric) {
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		dp := h.DataPoints().AppendEmpty()
		dp.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
		dp.SetCount(1)
		dp.SetSum(1)
		dp.BucketCounts().FromRaw([]uint64{1})
	},
		`__name__="bird_weight_bucket",__type__="histogram",le="+Inf",`, `__name__="bird_weight_count",__type__="histogram",`,
		`__name__="bird_weight_sum",__type__="histogram",`)
}

func TestUTF8Strategies(t *testing.T) {
	f := func(strategy otlptranslator.TranslationStrategyOption, want string) {
		t.Helper()
		md := gauge("größe.x", 1, epoch, "schlüssel.a", "wert")
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetUnit("By")
		series, _ := sent(t, v2Zstd, func(c *Config) { c.Names.Strategy = strategy }, md)
		require.Len(t, series, 1)
		assert.Equal(t, want, labelsOf(series[0]))
	}
	f(otlptranslator.NoTranslation, `__name__="größe.x",schlüssel.a="wert",`)
	f(otlptranslator.NoUTF8EscapingWithSuffixes, `__name__="größe.x_bytes",schlüssel.a="wert",`)
	f(otlptranslator.UnderscoreEscapingWithSuffixes, `__name__="gr_e_x_bytes",schl_ssel_a="wert",`)
	f(otlptranslator.UnderscoreEscapingWithoutSuffixes, `__name__="gr_e_x",schl_ssel_a="wert",`)
}

func TestConfigThatCannotWork(t *testing.T) {
	f := func(want string, change func(*Config)) {
		t.Helper()
		cfg := DefaultConfig()
		change(&cfg)
		_, err := New(cfg, &drops{})
		require.ErrorContains(t, err, want)
	}
	f("strategy", func(c *Config) { c.Names.Strategy = "x" })
	f("shards", func(c *Config) { c.Shards = 0 })
	f("max delta", func(c *Config) { c.Cache.Delta, c.MaxDelta = cache.DeltaCumulative, 0 })
	f("two names", func(c *Config) { c.Names.ExternalLabels = map[string]string{"a.b": "1", "a_b": "2"} })
	f("external label", func(c *Config) { c.Names.ExternalLabels = map[string]string{"": "1"} })
}

// The time for a point is proportional to its labels, not to their square: with as many as a hostile client may send, a
// point would take minutes, with the table locked.
func TestManyLabels(t *testing.T) {
	racetest.Sequential(t)
	f := func(n int) (fastest time.Duration) {
		t.Helper()
		attrs := make(map[string]any, 2*n)
		for i := range n {
			attrs[fmt.Sprintf("label.%d", i)], attrs[fmt.Sprintf("label_%d", i)] = "v", "w"
			attrs["a"+strings.Repeat(".", i%100)+strings.Repeat("-", i/100)] = fmt.Sprint(i)
		}
		fastest = time.Hour
		for range 3 {
			md := gauge("g", 1, epoch)
			require.NoError(t, md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes().FromRaw(attrs))
			start := time.Now()
			series, _ := sent(t, v2Zstd, func(c *Config) { c.Names.StrictLabels = true }, md)
			fastest = min(fastest, time.Since(start))
			require.Len(t, series, 1)
			assert.Contains(t, labelsOf(series[0]), fmt.Sprintf(`label_%d="v;w",`, n-1))
		}
		return fastest
	}
	var few, many time.Duration
	for range 5 { // a machine with other work may be slow while either is measured
		if few, many = f(2_000), f(16*2_000); many < 100*few {
			return
		}
	}
	assert.Fail(t, "16 times as many labels take more than a hundred times as long", "%v, not %v", many, few)
}
