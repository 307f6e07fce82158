// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRulesAreForWhatComesAfter: stored data was made with the rules of its time, and is sent like that.
func TestRulesAreForWhatComesAfter(t *testing.T) {
	directory := t.TempDir()
	d := newReceived(t, status(1<<30, http.StatusServiceUnavailable))
	e := create(t, func(c *Config) {
		c.Endpoint, c.Queue.Storage, c.ShutdownTimeout = d.URL, &storageID, time.Millisecond
		c.Retry.InitialInterval, c.Retry.MaxInterval = time.Minute, time.Minute
	})
	require.NoError(t, e.Start(t.Context(), newFiles(t, directory, nil)))
	require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
	eventually(t, func() bool { return len(d.headers()) > 0 }, "the only request is refused")
	require.NoError(t, e.Shutdown(t.Context()))

	d.recover()
	e, tel, logs := instrumentedOn(t, newFiles(t, directory, nil), d.URL, func(c *Config) {
		c.Queue.Storage = &storageID
		c.Labels.TargetInfo.Enabled = false
		c.Labels.WriteRelabelConfigs = []RelabelConfig{{Action: "drop", Regex: ".*"}}
	})
	for n := range 3 {
		require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 1+n)))
	}
	eventually(t, func() bool { return d.samples() == 10 }, "what was stored arrives")
	require.InDelta(t, 30, value(t, tel, "otelcol_exporter_remotewrite_relabel_dropped_points"), 0)
	require.Empty(t, logs.FilterMessageSnippet("cannot send").All(), "it is what was asked for")
	require.Empty(t, e.telemetry.leftOut())
	require.Equal(t, 10, d.samples())
}
