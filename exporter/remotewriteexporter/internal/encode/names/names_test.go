// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

func translator(t *testing.T, cfg Config) *Translator {
	t.Helper()
	if cfg.Strategy == "" {
		cfg.Strategy = otlptranslator.UnderscoreEscapingWithSuffixes
	}
	tr, err := New(cfg)
	require.NoError(t, err)
	return tr
}

func attributes(pairs ...string) pcommon.Map {
	m := pcommon.NewMap()
	for i := 0; i < len(pairs); i += 2 {
		m.PutStr(pairs[i], pairs[i+1])
	}
	return m
}

func TestKeysThatBecomeOneNameAreJoined(t *testing.T) {
	f := func(want []Label, pairs ...string) {
		t.Helper()
		list, err := translator(t, Config{}).Attributes(attributes(pairs...), func(key string) bool { return key == "skipped" })
		require.NoError(t, err)
		require.Equal(t, want, list)
	}
	f([]Label{})
	f([]Label{{"a_b", "1"}}, "a.b", "1", "skipped", "2", "empty", "")
	f([]Label{{"a_b", "2;1"}}, "a_b", "1", "a.b", "2")
	f([]Label{{"a_b", "same"}}, "a_b", "same", "a.b", "same")
	many, want := []string{}, []Label{}
	for c := 'a'; c <= 'z'; c++ { // more than are searched
		many = append(many, string(c)+".x", "1", string(c)+"_x", "2")
		want = append(want, Label{string(c) + "_x", "1;2"})
	}
	f(want, many...)
	_, err := translator(t, Config{}).Attributes(attributes("", "x"), nil)
	require.Error(t, err)
}

func TestJobAndInstanceIdentify(t *testing.T) {
	f := func(want []Label, pairs ...string) {
		t.Helper()
		require.Equal(t, want, Identify([]Label{{"job", "other"}, {"x", "y"}}, attributes(pairs...)))
	}
	f([]Label{{"job", "other"}, {"x", "y"}})
	f([]Label{{"job", "other"}, {"x", "y"}}, "service.namespace", "n")
	f([]Label{{"x", "y"}, {"job", "s"}}, "service.name", "s")
	f([]Label{{"x", "y"}, {"job", "n/s"}, {"instance", "i"}}, "service.name", "s", "service.namespace", "n", "service.instance.id", "i")
}

func TestNamesOfMetrics(t *testing.T) {
	f := func(want, name, unit string, mtype promwrite.MetricType, scraped bool, cfg Config) {
		t.Helper()
		made := translator(t, cfg).Metric(name, unit, otlptranslator.MetricTypeMonotonicCounter)
		if scraped {
			made = translator(t, cfg).Scraped(name, unit, otlptranslator.MetricTypeMonotonicCounter, mtype)
		}
		require.Equal(t, want, made)
	}
	f("a_b_seconds_total", "a.b", "s", promwrite.Counter, false, Config{})
	f("n_a_b_seconds_total", "a.b", "s", promwrite.Counter, false, Config{Namespace: "n"})
	f("a_seconds_total", "a", "s", promwrite.Counter, true, Config{})
	f("a", "a", "s", promwrite.Counter, true, Config{ScrapedNames: true})
	f("a_info", "a", "s", promwrite.Info, true, Config{ScrapedNames: true})
	f("a_info", "a_info", "s", promwrite.Info, true, Config{ScrapedNames: true})
	f("a_b_seconds_total", "a.b", "s", promwrite.Counter, true, Config{ScrapedNames: true})
	f("n_a_seconds_total", "a", "s", promwrite.Counter, true, Config{ScrapedNames: true, Namespace: "n"})
	require.Equal(t, "target_info", translator(t, Config{}).TargetInfo())
	require.Equal(t, "n_x_target_info", translator(t, Config{Namespace: "n.x"}).TargetInfo())
	require.Equal(t, "n.x_target_info", translator(t, Config{Namespace: "n.x", Strategy: otlptranslator.NoTranslation}).TargetInfo())
}

func TestTypeAndUnitAreLabelsWhereTheyAreKnown(t *testing.T) {
	f := func(want []Label, mtype promwrite.MetricType, unit string, wanted bool) {
		t.Helper()
		require.Equal(t, want, translator(t, Config{TypeAndUnitLabels: wanted}).TypeAndUnit(mtype, unit))
	}
	f(nil, promwrite.Gauge, "seconds", false)
	f([]Label{{"__type__", "gauge"}, {"__unit__", "seconds"}}, promwrite.Gauge, "seconds", true)
	f([]Label{{"__unit__", "seconds"}}, promwrite.Unknown, "seconds", true)
	f(nil, promwrite.Unknown, "", true)
}
