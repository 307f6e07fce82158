// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// How often the same series are sent, and their number: enough for a receiver to recognise them, and for each to be
// checked for changes of shared attributes.
const (
	sharingRounds = 40
	sharedSeries  = 20
)

// Three pipelines of one gateway, each with a receiver of remote write: one shares attributes between requests, one has
// processors that change attributes in place, and one forks into a pipeline that changes them and one that does not.
const sharingRoads = `
receivers:
  remotewrite/shares: {endpoint: %s}
  remotewrite/changes: {endpoint: %s}
  remotewrite/parts: {endpoint: %s}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 1000}
  cardinality: {defaults: {max_series_per_metric: 1000}}
  attributes: {actions: [{key: device, action: hash}, {key: zone, value: z, action: upsert}, {key: code, action: delete}]}
  transform: {metric_statements: [{context: datapoint, statements: ['set(attributes["path"], Concat([attributes["path"], "x"], ""))']}]}
exporters:
  remotewrite/shares: {endpoint: "%s", target_info: {enabled: false}, batch: {timeout: 10ms}}
  remotewrite/changes: {endpoint: "%s", target_info: {enabled: false}, batch: {timeout: 10ms}}
  remotewrite/parted: {endpoint: "%s", target_info: {enabled: false}, batch: {timeout: 10ms}}
  remotewrite/kept: {endpoint: "%s", target_info: {enabled: false}, batch: {timeout: 10ms}}
service:
  pipelines:
    metrics/shares: {receivers: [remotewrite/shares], processors: [memory_limiter, cardinality], exporters: [remotewrite/shares]}
    metrics/changes: {receivers: [remotewrite/changes], processors: [memory_limiter, transform, attributes], exporters: [remotewrite/changes]}
    metrics/parted: {receivers: [remotewrite/parts], processors: [transform, attributes], exporters: [remotewrite/parted]}
    metrics/kept: {receivers: [remotewrite/parts], exporters: [remotewrite/kept]}
`

// No component changes attributes that requests share: the same series come again and again, through processors that
// change attributes in place, and each time the same arrives.
func TestAttributesThatRequestsShareInABuiltGateway(t *testing.T) {
	t.Parallel()
	var servers []*rwserver.Server
	var in, settings []any
	for range 3 {
		addr := freeport.Addr(t)
		in, settings = append(in, addr), append(settings, addr)
	}
	for range 4 {
		server := rwserver.New(t, rwserver.Options{})
		servers = append(servers, server)
		settings = append(settings, server.URL())
	}
	c := startDistribution(t, "godwit", fmt.Sprintf(sharingRoads, settings...))
	c.WaitLog(firstWords, reuses)
	c.WaitLog(firstWords, doesNot)

	start := time.Now().Add(-time.Minute).UnixMilli()
	for round := range int64(sharingRounds) {
		for _, addr := range in {
			writeShared(t, fmt.Sprintf("http://%s/api/v1/write", addr), start+round)
		}
	}
	for i, changed := range []bool{false, true, true, false} {
		wait.Until(t, firstSeries, func() (bool, string) {
			n := 0
			for _, s := range servers[i].Series("") {
				n += len(s.Samples)
			}
			return n >= sharingRounds*sharedSeries, fmt.Sprintf("%d samples arrived at server %d", n, i)
		})
		series := servers[i].Series("")
		require.Len(t, series, sharedSeries, "server %d: %v", i, series)
		for _, s := range series {
			path, zone, code := fmt.Sprint("/of/", s.Samples[0].V), "", "200"
			if changed {
				path, zone, code = path+"x", "z", ""
			}
			assert.Equal(t, []string{path, zone, code}, []string{s.Labels.Get("path"), s.Labels.Get("zone"), s.Labels.Get("code")}, "server %d: %v", i, s.Labels)
			assert.Equal(t, changed, s.Labels.Get("device") != "eth0", "server %d: %v", i, s.Labels)
			var times []int64
			for _, sample := range s.Samples {
				times = append(times, sample.T-start)
				assert.InDelta(t, s.Samples[0].V, sample.V, 0, "the value tells the series: %v", s.Labels)
			}
			slices.Sort(times)
			assert.Len(t, slices.Compact(times), sharingRounds, "server %d: %v", i, s.Labels)
		}
	}
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	assert.NotContains(t, c.Output(), "changed attributes that several requests share")
	assert.NotContains(t, c.Output(), "panic")
}

// writeShared sends the same series with another timestamp.
func writeShared(t *testing.T, url string, at int64) {
	t.Helper()
	var r prompb.WriteRequest
	for i := range sharedSeries {
		r.Timeseries = append(r.Timeseries, prompb.TimeSeries{
			Labels: []prompb.Label{
				{Name: "__name__", Value: fmt.Sprint("shared_", i%3)},
				{Name: "code", Value: "200"},
				{Name: "device", Value: "eth0"},
				{Name: "job", Value: "again"},
				{Name: "path", Value: fmt.Sprint("/of/", i)},
			},
			Samples: []prompb.Sample{{Timestamp: at, Value: float64(i)}},
		})
	}
	raw, err := r.Marshal()
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(snappy.Encode(nil, raw)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 2, resp.StatusCode/100, "status %d", resp.StatusCode)
}
