// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
)

// Parsing a page that has arrived may take as long as the timeout, but no longer. After that the page is discarded.
func TestReadingHasItsTime(t *testing.T) {
	target := still(t, "", canned(t, "", []byte(text)))
	target.scrape(time.Now())
	require.Equal(t, stateHealthy, target.status.state)
	page := []byte(strings.Repeat("# a comment\n", 4*piece/12) + text)
	read := func(before time.Duration) (samples int, why string, err error) {
		in := &arrival{target: target, at: time.Now(), read: before}
		slot := in.resume()
		defer slot.release()
		result, why, err := in.end(time.Now(), fetch.Response{ContentType: typeText, Body: page}, nil, slot.decoder)
		result.Release()
		return result.Samples, why, err
	}
	samples, why, err := read(0)
	require.NoError(t, err)
	assert.Empty(t, why)
	assert.Equal(t, 2, samples)

	samples, why, err = read(target.have.Timeout)
	require.EqualError(t, err, fmt.Sprintf("cannot read page within `scrape_timeout` (%v)", target.have.Timeout))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, fetch.ReasonTimeout, why)
	assert.Zero(t, samples)
	assert.False(t, target.quick, "it comes after the others the next time")
	target.job.owner.slots.settled(t)
}

// While a page is parsed, others may have their turn after each piece, and no sample is lost.
func TestPagesArePausedBetweenPieces(t *testing.T) {
	const series = 40_000
	var b strings.Builder
	for i := range series {
		fmt.Fprintf(&b, "requests{path=\"/a/path/that/is/rather/long/for/a/label/%d\"} 42\n", i)
	}
	target := still(t, "", canned(t, "", []byte(b.String())))
	h := target.job.owner.slots
	h.mu.Lock()
	h.free, h.keep = 1, 1
	h.mu.Unlock()
	var stop atomic.Bool
	others := make(chan int)
	go func() {
		n := 0
		for ; !stop.Load(); n++ {
			h.take(quick).release()
			time.Sleep(time.Millisecond)
		}
		others <- n
	}()
	for range 3 {
		target.scrape(time.Now())
		assert.Equal(t, series, target.status.samples)
		require.NoError(t, target.status.err)
	}
	stop.Store(true)
	assert.Positive(t, <-others)
	h.settled(t)
}

// A blocked pipeline does not delay the removal of targets. When it continues, their series end.
func TestReloadWhileThePipelineBlocks(t *testing.T) {
	stays, goes := newEndpoint(t, text), newEndpoint(t, text)
	file := filepath.Join(t.TempDir(), "targets.json")
	fill(t, file, fmt.Sprintf(`[{"targets": [%q, %q]}]`, stays.address(), goes.address()))
	var blocks atomic.Bool
	blocked := make(chan struct{})
	p := &pipeline{consume: func(context.Context, string) error {
		if blocks.Load() {
			<-blocked
		}
		return nil
	}}
	var ended atomic.Bool
	r := run(t, fmt.Sprintf(`
config:
  scrape_configs:
    - job_name: test
      scrape_interval: 200ms
      scrape_timeout: 200ms
      file_sd_configs: [{files: [%q]}]
`, file), withConsumer(watched{p, func(md pmetric.Metrics) {
		for _, point := range points([]pmetric.Metrics{md}) {
			if point.instance == goes.address() && point.stale {
				ended.Store(true)
			}
		}
	}}))
	taken := func(target *endpoint) int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.got[target.address()]
	}
	require.Eventually(t, func() bool { return taken(goes) > 0 && taken(stays) > 0 }, patience, glance)
	blocks.Store(true)
	require.Eventually(t, func() bool { return p.inside.Load() == 2 }, patience, glance)
	fill(t, file, fmt.Sprintf(`[{"targets": [%q]}]`, stays.address()))
	require.Eventually(t, func() bool { return len(r.Snapshot().Jobs[0].Targets) == 1 }, patience, glance)
	require.Eventually(t, func() bool { return r.skips.counts[skipPipeline].Load() > 2 }, patience, glance, "counted while it blocks")
	before := taken(stays)
	blocks.Store(false)
	close(blocked)
	require.Eventually(t, func() bool { return ended.Load() && taken(stays) > before+1 }, patience, glance)
}

// watched shows what a pipeline receives.
type watched struct {
	*pipeline

	look func(pmetric.Metrics)
}

func (w watched) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	w.look(md)
	return w.pipeline.ConsumeMetrics(ctx, md)
}
