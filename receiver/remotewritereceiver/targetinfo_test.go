// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// resourcesOf returns the attributes of resources, by instance.
func resourcesOf(md pmetric.Metrics) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, rm := range md.ResourceMetrics().All() {
		raw := rm.Resource().Attributes().AsRaw()
		all[fmt.Sprint(raw["service.instance.id"])] = raw
	}
	return all
}

// TestTargetInfoBecomesTheResource: of the other series in the request, also before it, and of later ones, until it is
// stale.
func TestTargetInfoBecomesTheResource(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	r := start(t, settings(), sink, func(c *Config) { c.TargetInfo.ToResource = true })
	send := func(samples int, series ...[]string) map[string]map[string]any {
		t.Helper()
		sink.Reset()
		request := newV2()
		for _, labels := range series {
			value := 1.0
			if labels[0] == "stale" {
				labels, value = labels[1:], math.Float64frombits(promwrite.StaleNaN)
			}
			request.series(sample(value, 1000, 0), writev2.Metadata_METRIC_TYPE_GAUGE, "", "", labels...)
		}
		a := postV2(t, r, &request.Request)
		require.Equal(t, http.StatusNoContent, a.code, a.body)
		require.Equal(t, len(series), a.written.Samples, "what is remembered is written")
		require.Equal(t, samples, sink.DataPointCount())
		if samples == 0 {
			return nil
		}
		return resourcesOf(sink.AllMetrics()[0])
	}
	plain := func(instance string) map[string]any {
		return map[string]any{"service.namespace": "n", "service.name": "j", "service.instance.id": instance}
	}
	with := func(instance, zone string) map[string]any {
		m := plain(instance)
		m["zone"] = zone
		return m
	}
	series := func(instance string) []string { return []string{"__name__", "a", "instance", instance, "job", "n/j"} }
	told := func(instance, zone string) []string {
		return []string{"__name__", "target_info", "empty", "", "instance", instance, "job", "n/j", "service.name", "other", "zone", zone}
	}

	got := send(2, series("1"), told("1", "east"), series("2"))
	require.Equal(t, map[string]map[string]any{"1": with("1", "east"), "2": plain("2")}, got)
	require.Nil(t, send(0, told("2", "west")))
	got = send(2, series("1"), series("2"))
	require.Equal(t, map[string]map[string]any{"1": with("1", "east"), "2": with("2", "west")}, got)
	got = send(1, told("1", "south"), series("1"))
	require.Equal(t, with("1", "south"), got["1"])
	got = send(2, append([]string{"stale"}, told("1", "south")...), series("1"), series("2"))
	require.Equal(t, map[string]map[string]any{"1": plain("1"), "2": with("2", "west")}, got)

	// A target_info without a target, or a too large one, stays a series.
	send(2, []string{"__name__", "target_info", "zone", "east"}, told("3", strings.Repeat("far ", maxInfo/4)))
}

func TestTargetInfoStaysASeries(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	request := newV2()
	request.series(sample(1, 1000, 0), writev2.Metadata_METRIC_TYPE_GAUGE, "", "", "__name__", "target_info", "instance", "1", "job", "j", "zone", "east")
	postV2(t, start(t, settings(), sink, func(*Config) {}), &request.Request)
	require.Equal(t, "target_info", sink.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Name())
}

// TestTenantsDoNotShareTargets: no tenant gets the data of another.
func TestTenantsDoNotShareTargets(t *testing.T) {
	x := newInfos(10)
	mine, theirs := asker{x, "mine"}, asker{x, "theirs"}
	series := []promwrite.Series{{
		Labels:  []promwrite.Label{{Name: "__name__", Value: "target_info"}, {Name: "instance", Value: "1"}, {Name: "zone", Value: "east"}},
		Samples: []promwrite.Sample{{Value: 1, Timestamp: 1}},
	}}
	left, taken := mine.learn(series, nil)
	require.Empty(t, left)
	require.Equal(t, 1, taken.Samples)
	for a, want := range map[*asker]int{&mine: 2, &theirs: 1} {
		md := pmetric.NewMetrics()
		attributes := md.ResourceMetrics().AppendEmpty().Resource().Attributes()
		key := resourceKey{instance: "1"}
		setTarget(attributes, key.job, key.instance)
		a.describe(key, attributes)
		require.Equal(t, want, attributes.Len())
	}
}

// TestTargetsAreForgotten when they are not sent any more; they are limited in number and in bytes.
func TestTargetsAreForgotten(t *testing.T) {
	x := newInfos(100)
	key := func(n int) infoKey { return infoKey{"t", "j", fmt.Sprint(n)} }
	one := infoLabels{labels: []promwrite.Label{{Name: "a", Value: "b"}}, size: 1}
	for n := range 1000 {
		x.set(key(n), one)
		require.NotNil(t, x.of(key(0)), "it is heard of all the time")
		require.LessOrEqual(t, len(x.fresh)+len(x.before), 100)
	}
	require.Nil(t, x.of(key(500)))
	require.NotNil(t, x.of(key(999)))
	x.set(key(999), infoLabels{})
	require.Nil(t, x.of(key(999)))

	x = newInfos(1 << 20)
	for n := range 10_000 {
		x.set(key(n), infoLabels{labels: one.labels, size: maxInfo})
		sum := 0
		for _, generation := range []map[infoKey]infoLabels{x.fresh, x.before} {
			for _, i := range generation {
				sum += i.size
			}
		}
		require.LessOrEqual(t, sum, maxInfos)
	}
}
