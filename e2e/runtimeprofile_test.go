// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	// Of a kilobyte each; as many as the queue of a signal holds.
	autoItems = 15_000
	// The budget for all memory of the process, including the pages of its binary.
	autoBudget = 96 << 20
	// GOMEMLIMIT is soft: between two collections the heap may exceed it a little, and on a busy machine collections
	// come late. If GOGC did not change, it would exceed the limit by much more: at least the size of the live heap.
	autoSlack = 24 << 20
	// Measurements with full queues.
	fullLooks, autoLookEvery = 40, 250 * time.Millisecond
)

const autoConfig = `
extensions: {runtimeprofile: {profile: auto, memory_limit: 96MiB, refresh_interval: 1s}}
receivers: {otlp: {protocols: {grpc: {endpoint: %s}}}}
exporters:
  nop:
  otlp_grpc:
    endpoint: %s
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms, max_elapsed_time: 0}
    sending_queue: {sizer: items, queue_size: %d}
service:
  extensions: [health_check, runtimeprofile]
  pipelines:
    metrics: {receivers: [otlp], exporters: [nop]}
    logs: {receivers: [otlp], exporters: [otlp_grpc]}
    traces: {receivers: [otlp], exporters: [otlp_grpc]}
`

// The profile auto raises GOGC while memory is free, and lowers it as the heap fills: the process stays within its
// budget when the queues for a destination that is down are full.
func TestAutoProfileHoldsItsBudget(t *testing.T) {
	t.Parallel()
	in := freeport.Addr(t)
	c := startCollector(t, fmt.Sprintf(autoConfig, in, freeport.Addr(t), autoItems))
	defer newTally().flood(t, in)()
	gogc := func() float64 { return c.metric(t, "otelcol_extension_runtimeprofile_gogc") }
	wait.Until(t, delivery, func() (bool, string) {
		now := gogc()
		return now > 100, fmt.Sprintf("GOGC is %v, while collecting takes %v of the CPU", now, c.metric(t, "otelcol_extension_runtimeprofile_gc_cpu_ratio"))
	})
	most := gogc()

	conn, l := dial(t, in), &ledger{padding: 1000}
	wait.Until(t, delivery, func() (bool, string) {
		for range autoItems / perRequest / 10 {
			_ = l.send(t.Context(), conn) // fails if the queues are full
		}
		size := c.metric(t, "otelcol_exporter_queue_size")
		return size > 1.9*autoItems, fmt.Sprintf("%v items are queued", size)
	})
	looks, peak := 0, int64(0)
	wait.Until(t, delivery, func() (bool, string) {
		for wait.Pause(t.Context(), autoLookEvery) {
			peak = max(peak, c.Usage().RSS)
			if looks++; looks%4 == 0 {
				break
			}
		}
		return looks >= fullLooks, fmt.Sprintf("%d looks", looks)
	})
	live := c.metric(t, "otelcol_extension_runtimeprofile_heap_live")
	t.Logf("GOGC was %v, and is %v with %.1f MiB live: %.1f MiB at most", most, gogc(), mib(int64(live)), mib(peak))
	require.Greater(t, live, float64(32<<20), "the queues are in memory")
	assert.Less(t, gogc(), most, "it gives back what no longer fits")
	assert.LessOrEqual(t, mib(peak), mib(autoBudget+autoSlack))
}
