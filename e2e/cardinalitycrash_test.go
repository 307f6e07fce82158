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

// Who had a place has it after a kill, too: those who come first afterwards gain nothing.
func TestPlacesSurviveAKill(t *testing.T) {
	t.Parallel()
	const places = 50
	destination, addr, data := otlpserver.New(t, otlpserver.Options{}), freeport.Addr(t), t.TempDir()
	g := startDistribution(t, "godwit-gateway", fmt.Sprintf(placesConfig, addr, places, destination.GRPCAddr(), data))
	arrive := func(first int) int {
		t.Helper()
		before := destination.Totals().DataPoints
		_, err := pmetricotlp.NewGRPCClient(dial(t, addr)).Export(t.Context(), pmetricotlp.NewExportRequestFromMetrics(gaugesOf(first, places)))
		require.NoError(t, err)
		return destination.Totals().DataPoints - before
	}
	require.Equal(t, places, arrive(0))
	require.Zero(t, arrive(1000))
	for range 2 {
		wait.Until(t, delivery, savedSince(data, time.Now()))
		g.Kill()
		g.Restart()
		g.ready()
		require.Zero(t, arrive(2000), "newcomers after a kill")
		require.Equal(t, places, arrive(0), "who was there before")
	}
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
}

// savedSince says whether a snapshot that began after a moment is on disk: they are a second apart, and take less.
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

// A processor in two pipelines is two instances, each with its places, which it has after a restart and a kill, too.
func TestTwoPipelinesShareAStorage(t *testing.T) {
	t.Parallel()
	const places = 50
	data := t.TempDir()
	type lane struct {
		addr        string
		destination *otlpserver.Server
		first       int
	}
	lanes := []lane{
		{addr: freeport.Addr(t), destination: otlpserver.New(t, otlpserver.Options{}), first: 0},
		{addr: freeport.Addr(t), destination: otlpserver.New(t, otlpserver.Options{}), first: 10_000},
	}
	g := startDistribution(t, "godwit-gateway", fmt.Sprintf(twoPipelinesConfig, lanes[0].addr, lanes[1].addr, places,
		lanes[0].destination.GRPCAddr(), lanes[1].destination.GRPCAddr(), data))
	arrive := func(l *lane, first int) int {
		t.Helper()
		before := l.destination.Totals().DataPoints
		_, err := pmetricotlp.NewGRPCClient(dial(t, l.addr)).Export(t.Context(), pmetricotlp.NewExportRequestFromMetrics(gaugesOf(first, places)))
		require.NoError(t, err)
		return l.destination.Totals().DataPoints - before
	}
	for i := range lanes {
		require.Equal(t, places, arrive(&lanes[i], lanes[i].first))
		require.Zero(t, arrive(&lanes[i], lanes[1-i].first))
	}
	for _, how := range []string{"kill", "stop"} {
		if how == "kill" {
			wait.Until(t, delivery, savedSince(data, time.Now()))
			g.Kill()
		} else {
			require.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
		}
		g.Restart()
		g.ready()
		for i := range lanes {
			require.Zero(t, arrive(&lanes[i], lanes[1-i].first), "%s: what has its places in the other pipeline", how)
			require.Equal(t, places, arrive(&lanes[i], lanes[i].first), how)
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
