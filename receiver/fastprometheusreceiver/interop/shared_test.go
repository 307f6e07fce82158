// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/attributesprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// listener accepts remote write, and records the series of each time.
type listener struct {
	mu     sync.Mutex
	series map[int64][]string
}

func (l *listener) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var written promwrite.Written
	err := eachSeries(r, func(s *promwrite.Series) {
		written.Samples += len(s.Samples)
		for _, v := range s.Samples {
			l.series[v.Timestamp] = append(l.series[v.Timestamp], fmt.Sprint(s.Labels))
		}
	})
	if err != nil {
		answer.WriteHeader(http.StatusBadRequest)
		return
	}
	written.SetHeaders(answer.Header())
}

// at returns the series of a time, sorted, or nil if fewer than n have arrived so far.
func (l *listener) at(time int64, n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.series[time]) < n {
		return nil
	}
	all := slices.Clone(l.series[time])
	slices.Sort(all)
	return all
}

// TestNobodyChangesWhatRequestsShare: the same series are sent again and again, through a processor that changes
// attributes. It gets no shared attributes: its result for a series is the same each time.
func TestNobodyChangesWhatRequestsShare(t *testing.T) {
	for name, c := range map[string]struct {
		processor string
		road      string // what the receiver says about reuse
		factory   processor.Factory
		series    int // -1 means that it leaves some out
	}{
		"attributes": {
			processor: `attributes: {actions: [{key: path, action: hash}, {key: zone, value: z, action: upsert}, {key: code, action: delete}]}`,
			road:      unused, factory: attributesprocessor.NewFactory(),
		},
		"transform": {
			processor: `transform: {metric_statements: [{context: datapoint, statements: ['set(attributes["path"], Concat([attributes["path"], "x"], ""))']}]}`,
			road:      unused, factory: transformprocessor.NewFactory(),
		},
		"cardinality":            {processor: `cardinality: {defaults: {max_series_per_metric: 1000}}`, road: used},
		"cardinality, dry run":   {processor: `cardinality: {mode: dry_run, defaults: {max_series_per_metric: 3}}`, road: used},
		"cardinality, enforcing": {processor: `cardinality: {defaults: {max_series_per_metric: 3}}`, road: used, series: -1},
		"cardinality, aggregate": {processor: `cardinality: {overflow: {interval: 1s}, rules: [{name: sums, match: {metric: "metric_*"}, aggregate: {without: [path]}}]}`, road: used, series: -1},
		"memory_limiter":         {processor: `memory_limiter: {check_interval: 1s, limit_mib: 4000}`, road: used},
	} {
		t.Run(name, func(t *testing.T) {
			var more []processor.Factory
			if c.factory != nil {
				more = append(more, c.factory)
			}
			r := startRelay(t, c.processor, more...)
			require.Equal(t, 1, r.log.FilterMessage(c.road).Len(), "%s is to be said", c.road)
			var first []string
			for i := range int64(40) {
				r.send(t, 1000+i)
				if c.series < 0 { // those that arrive were sent, or are made of many
					continue
				}
				var got []string
				require.Eventually(t, func() bool {
					got = r.at(1000+i, relaySeries)
					return got != nil
				}, patience, glance)
				if first == nil {
					first = got
				}
				require.Equal(t, first, got, "request %d", i)
			}
			if c.series < 0 {
				require.Eventually(t, func() bool {
					r.mu.Lock()
					defer r.mu.Unlock()
					return len(r.series) > 0
				}, patience, glance)
				r.mu.Lock()
				defer r.mu.Unlock()
				for at, series := range r.series {
					for _, s := range series {
						require.True(t, strings.Contains(s, "path again") || !strings.Contains(s, "path") || strings.Contains(s, "overflow"), "%d: %s", at, s)
					}
				}
			}
			require.Zero(t, r.log.FilterMessageSnippet("changed attributes that several requests share").Len())
		})
	}
}

// TestWhoBreaksHisPromiseIsFound: a processor says that it releases metrics, but changes them in place. This is
// detected and logged once, and from then on the processor gets attributes of its own.
func TestWhoBreaksHisPromiseIsFound(t *testing.T) {
	if handback.Poisons() {
		t.Skip("what is overwritten is not shared")
	}
	r := startRelay(t, "lying: {}", lying())
	require.Equal(t, 1, r.log.FilterMessage(used).Len())
	said := func() int { return r.log.FilterMessageSnippet("changed attributes that several requests share").Len() }
	i := int64(1000)
	for ; said() == 0; i++ {
		require.Less(t, i, int64(1100))
		r.send(t, i)
	}
	for range 20 {
		i++
		r.send(t, i)
		var got []string
		require.Eventually(t, func() bool {
			got = r.at(i, relaySeries)
			return got != nil
		}, patience, glance)
		for _, s := range got {
			require.Contains(t, s, "changed}", "request %d", i)
			require.NotContains(t, s, "changedchanged")
		}
	}
	require.Equal(t, 1, said())
}

// lying returns a processor that appends to an attribute in place, and says that it releases metrics.
func lying() processor.Factory {
	return processor.NewFactory(component.MustNewType("lying"), func() component.Config { return &struct{}{} }, processor.WithMetrics(
		func(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
			p, err := processorhelper.NewMetrics(ctx, set, cfg, next, func(_ context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
				for _, rm := range md.ResourceMetrics().All() {
					for _, sm := range rm.ScopeMetrics().All() {
						for _, m := range sm.Metrics().All() {
							for _, p := range m.Gauge().DataPoints().All() {
								if v, ok := p.Attributes().Get("path"); ok {
									v.SetStr(v.Str() + "changed")
								}
							}
						}
					}
				}
				return md, nil
			}, processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}))
			if err == nil {
				handback.Register(p, promise{})
			}
			return p, err
		}, component.StabilityLevelDevelopment))
}

type promise struct{}

func (promise) ReleasesMetrics() error { return nil }

const relaySeries = 20

// relay is a collector that accepts remote write and sends it to a listener.
type relay struct {
	*collector
	*listener

	address string
}

func startRelay(t *testing.T, configured string, more ...processor.Factory) *relay {
	t.Helper()
	r := &relay{listener: &listener{series: map[int64][]string{}}, address: freeAddress(t)}
	far := httptest.NewServer(r.listener)
	t.Cleanup(far.Close)
	name, _, _ := strings.Cut(configured, ":")
	r.collector = start(t, fmt.Sprintf(`
receivers: {remotewrite: {endpoint: "%s"}}
processors: {%s}
exporters: {remotewrite: {endpoint: "%s", target_info: {enabled: false}, batch: {timeout: 5ms}}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [remotewrite], processors: [%s], exporters: [remotewrite]}}
`, r.address, configured, far.URL, name), more...)
	return r
}

// send sends the same series with the given time.
func (r *relay) send(t *testing.T, at int64) {
	t.Helper()
	var list [][]promwrite.Label
	for i := range relaySeries {
		list = append(list, []promwrite.Label{
			{Name: "__name__", Value: fmt.Sprint("metric_", i%3)},
			{Name: "code", Value: "200"},
			{Name: "instance", Value: "host:1"},
			{Name: "job", Value: "node"},
			{Name: "path", Value: fmt.Sprint("again", i)},
		})
	}
	body, err := encodeWrite(list, at)
	require.NoError(t, err)
	req, err := http.NewRequest(http.MethodPost, "http://"+r.address+"/api/v1/write", bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "identity")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
}
