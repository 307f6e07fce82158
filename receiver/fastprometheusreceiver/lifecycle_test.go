// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Shutdown returns in the middle of everything, and leaves nothing behind.
func TestShutdownUnderLoad(t *testing.T) {
	target := newEndpoint(t, text)
	hanging := newEndpoint(t, "")
	hanging.handle(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	var targets strings.Builder
	for i := range 50 {
		fmt.Fprintf(&targets, "- targets: [%s, %s]\n  labels: {n: \"%d\"}\n", target.address(), hanging.address(), i)
	}
	file := filepath.Join(t.TempDir(), "targets.yaml")
	fill(t, file, targets.String())
	for range 3 {
		r := run(t, fmt.Sprintf(`
config:
  scrape_configs:
    - job_name: test
      scrape_interval: 1s
      scrape_timeout: 1s
      file_sd_configs: [{files: [%q]}]
`, file))
		require.Eventually(t, func() bool { return r.counters.scrapes.Load() > 20 }, patience, glance)
		began := time.Now()
		require.NoError(t, r.Shutdown(t.Context()))
		assert.Less(t, time.Since(began), patience/2)
		assert.Empty(t, r.some(func(p point) bool { return p.stale }))
	}
}

// A pipeline that never returns does not delay Shutdown beyond its limit.
func TestShutdownWithStuckPipeline(t *testing.T) {
	target := newEndpoint(t, text)
	entered := make(chan struct{}, 100)
	next, err := consumer.NewMetrics(func(ctx context.Context, _ pmetric.Metrics) error {
		entered <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	require.NoError(t, err)
	r := prepare(t, configure(t, fmt.Sprintf(static, target.address())), withConsumer(next))
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, r.Shutdown(ctx), context.DeadlineExceeded)
}

// More scrapes than slots continue while a pipeline blocks.
func TestSlotsAreLent(t *testing.T) {
	target := newEndpoint(t, text)
	var inside atomic.Int64
	release := make(chan struct{})
	next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error {
		inside.Add(1)
		<-release
		return nil
	})
	require.NoError(t, err)
	var targets strings.Builder
	for i := range 40 {
		fmt.Fprintf(&targets, "- targets: [%s]\n  labels: {n: \"%d\"}\n", target.address(), i)
	}
	file := filepath.Join(t.TempDir(), "targets.yaml")
	fill(t, file, targets.String())
	r := run(t, fmt.Sprintf(`
config:
  scrape_configs:
    - job_name: test
      scrape_interval: 1s
      file_sd_configs: [{files: [%q]}]
      scrape_timeout: 1s
`, file), withConsumer(next))
	require.Greater(t, 40, r.slots.keep)
	require.Eventually(t, func() bool { return inside.Load() == 40 }, patience, glance)
	close(release)
}

func TestScrapeOnShutdown(t *testing.T) {
	target := newEndpoint(t, text)
	r := run(t, fmt.Sprintf(`
scrape_on_shutdown: true
initial_scrape_offset: 1h
config:
  scrape_configs:
    - job_name: test
      static_configs: [{targets: [%s]}]
`, target.address()))
	require.Eventually(t, func() bool { return r.census()[stateUnknown] == 1 }, patience, glance)
	assert.Zero(t, target.served.Load())
	require.NoError(t, r.Shutdown(t.Context()))
	assert.Equal(t, int64(1), target.served.Load())
	assert.NotEmpty(t, r.some(is("requests", 42)))
}

// A target that service discovery no longer finds gets no last scrape.
func TestScrapeOnShutdownSparesWhoLeaves(t *testing.T) {
	stays, goes := newEndpoint(t, text), newEndpoint(t, text)
	file := filepath.Join(t.TempDir(), "targets.json")
	fill(t, file, fmt.Sprintf(`[{"targets": [%q, %q]}]`, stays.address(), goes.address()))
	r := run(t, fmt.Sprintf(`
scrape_on_shutdown: true
initial_scrape_offset: 1h
config:
  scrape_configs:
    - job_name: test
      file_sd_configs: [{files: [%q]}]
`, file))
	require.Eventually(t, func() bool { return r.census()[stateUnknown] == 2 }, patience, glance)
	fill(t, file, fmt.Sprintf(`[{"targets": [%q]}]`, stays.address()))
	require.Eventually(t, func() bool { return r.census()[stateUnknown] == 1 }, patience, glance)
	require.NoError(t, r.Shutdown(t.Context()))
	assert.Equal(t, int64(1), stays.served.Load())
	assert.Zero(t, goes.served.Load())
}

// A target that does not respond does not delay the receiver longer than a pipeline may.
func TestScrapeOnShutdownOfTargetsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{latency: time.Hour}
		r, _ := f.launch(t, 2*lastScrapes, "scrape_on_shutdown: true\ninitial_scrape_offset: 1h")
		time.Sleep(time.Second)
		asked := time.Now()
		require.NoError(t, r.Shutdown(t.Context()))
		assert.Equal(t, lastWait, time.Since(asked))
		assert.Zero(t, f.open.Load())
	})
}

func TestNoStaleMarkersOnShutdown(t *testing.T) {
	target := newEndpoint(t, text)
	r := run(t, fmt.Sprintf(static, target.address()))
	r.await(t, is("requests", 42))
	require.NoError(t, r.Shutdown(t.Context()))
	assert.Empty(t, r.some(func(p point) bool { return p.stale }))
}
