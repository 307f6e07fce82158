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
