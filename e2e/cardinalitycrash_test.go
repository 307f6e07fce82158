// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc/metadata"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const placesConfig = `
receivers: {otlpstream: {protocols: {grpc: {endpoint: %q}}}}
processors:
  cardinality:
    rules: [{name: places, max_series: %d, on_exceed: [drop]}]
    storage: file_storage
    snapshot_interval: 1s
exporters: {otlp_grpc: {endpoint: %q, tls: {insecure: true}, sending_queue: {enabled: false}}}
extensions: {file_storage: {directory: %q}}
service:
  extensions: [health_check, file_storage]
  pipelines: {metrics: {receivers: [otlpstream], processors: [cardinality], exporters: [otlp_grpc]}}
`

// Series that were admitted before a kill are admitted after it; new series are still dropped.
func TestPlacesSurviveAKill(t *testing.T) {
	t.Parallel()
	const places = 50
	gateway, data := newWay(t), t.TempDir()
	g := startDistribution(t, "godwit-gateway", fmt.Sprintf(placesConfig, gateway.addr, places, gateway.destination.GRPCAddr(), data))
	require.Equal(t, places, gateway.arrive(t, "", 0, places))
	require.Zero(t, gateway.arrive(t, "", 1000, places))
	for range 2 {
		killSaved(t, g, data)
		require.Zero(t, gateway.arrive(t, "", 2000, places), "newcomers after a kill")
		require.Equal(t, places, gateway.arrive(t, "", 0, places), "who was there before")
	}
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
}

// way is a gateway's address and the server to which it sends.
type way struct {
	addr        string
	destination *otlpserver.Server
}

func newWay(t *testing.T) way {
	t.Helper()
	return way{freeport.Addr(t), otlpserver.New(t, otlpserver.Options{})}
}

// arrive sends gauges for a flock and returns how many of them arrived.
func (w way) arrive(t *testing.T, flock string, first, n int) int {
	t.Helper()
	before := w.destination.Totals().DataPoints
	as(t, w.addr, flock, gaugesOf(first, n))
	return w.destination.Totals().DataPoints - before
}

// as sends metrics with a flock's metadata, or with none if flock is empty.
func as(t *testing.T, addr, flock string, md pmetric.Metrics) {
	t.Helper()
	ctx := t.Context()
	if flock != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-flock", flock)
	}
	_, err := pmetricotlp.NewGRPCClient(dial(t, addr)).Export(ctx, pmetricotlp.NewExportRequestFromMetrics(md))
	require.NoError(t, err)
}

// killSaved waits until the gateway has saved its state, then kills and restarts it.
func killSaved(t *testing.T, g *collector, data string) {
	t.Helper()
	wait.Until(t, delivery, savedSince(data, time.Now()))
	g.Kill()
	g.Restart()
	g.ready()
}

// savedSince reports whether a snapshot that started after moment is on disk. Snapshots start every second and take
// less.
func savedSince(data string, moment time.Time) func() (bool, string) {
	return func() (bool, string) {
		files, _ := filepath.Glob(filepath.Join(data, "*cardinality*"))
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && info.ModTime().After(moment.Add(2*time.Second)) {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%v are old", files)
	}
}

func gaugesOf(first, n int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("geese")
	points := m.SetEmptyGauge().DataPoints()
	for i := range n {
		p := points.AppendEmpty()
		p.SetIntValue(1)
		p.Attributes().PutInt("ring", int64(first+i))
	}
	return md
}

const twoPipelinesConfig = `
receivers:
  otlpstream/a: {protocols: {grpc: {endpoint: %q}}}
  otlpstream/b: {protocols: {grpc: {endpoint: %q}}}
processors:
  cardinality:
    rules: [{name: places, max_series: %d, on_exceed: [drop]}]
    storage: file_storage
    snapshot_interval: 1s
exporters:
  otlp_grpc/a: {endpoint: %q, tls: {insecure: true}, sending_queue: {enabled: false}}
  otlp_grpc/b: {endpoint: %q, tls: {insecure: true}, sending_queue: {enabled: false}}
extensions: {file_storage: {directory: %q}}
service:
  extensions: [health_check, file_storage]
  pipelines:
    metrics/a: {receivers: [otlpstream/a], processors: [cardinality], exporters: [otlp_grpc/a]}
    metrics/b: {receivers: [otlpstream/b], processors: [cardinality], exporters: [otlp_grpc/b]}
`

// A processor in two pipelines is two instances. Each has series of its own and keeps them after a restart and after a
// kill.
func TestTwoPipelinesShareAStorage(t *testing.T) {
	t.Parallel()
	const places = 50
	data := t.TempDir()
	ways, first := []way{newWay(t), newWay(t)}, []int{0, 10_000}
	g := startDistribution(t, "godwit-gateway", fmt.Sprintf(twoPipelinesConfig, ways[0].addr, ways[1].addr, places,
		ways[0].destination.GRPCAddr(), ways[1].destination.GRPCAddr(), data))
	for i, w := range ways {
		require.Equal(t, places, w.arrive(t, "", first[i], places))
		require.Zero(t, w.arrive(t, "", first[1-i], places))
	}
	for _, how := range []string{"kill", "stop"} {
		if how == "kill" {
			killSaved(t, g, data)
		} else {
			require.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
			g.Restart()
			g.ready()
		}
		for i, w := range ways {
			require.Zero(t, w.arrive(t, "", first[1-i], places), "%s: what has its places in the other pipeline", how)
			require.Equal(t, places, w.arrive(t, "", first[i], places), how)
		}
	}
	files, err := filepath.Glob(filepath.Join(data, "*cardinality*"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, "%s has the key", file)
	}
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
}
