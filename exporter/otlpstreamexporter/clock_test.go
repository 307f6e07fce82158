// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stepless reports whether a time has a monotonic reading. The duration between two such times is correct even if the
// wall clock is set meanwhile; otherwise it includes the change.
func stepless(moment time.Time) bool { return strings.Contains(moment.String(), " m=") }

// TestStepsOfTheClockAreNotSeen checks every stored time of requests and streams.
func TestStepsOfTheClockAreNotSeen(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		over := make(chan struct{})
		s := run(t, &testServer{stream: func(p *peer) error {
			for {
				r, err := p.recv()
				if err != nil {
					<-over // so that the exporter waits for the end
					return eof(err)
				}
				if r.name == batch(0) || r.name == batch(3) {
					p.ack(r.id)
				}
			}
		}}, kind)
		e := newTestExporter(t, kind, s.addr, impatient, func(cfg *Config) {
			cfg.Rebalance.Requests = 1
		})
		t.Cleanup(func() { close(over) })
		d, slot := e.dest, e.dest.lanes.common.slots[0]
		for i := range 4 { // in this order
			e.export(i, 1)
			eventually(t, func() bool { b := e.balanced(); return b.Queued == 0 && (i != 0 && i != 3 || b.Acked > int64(i/3)) }, "it is sent")
		}
		moments := map[string]time.Time{}
		look := func() bool {
			e.expire(0)
			slot.mu.Lock()
			defer slot.mu.Unlock()
			for waiting := range slot.pending.All {
				moments["sent"], moments["since"] = waiting.Sent, waiting.Value.since
				if overtaken := waiting.Value.overtaken.own; !overtaken.IsZero() {
					moments["overtaken"] = overtaken
				}
			}
			for _, l := range slot.links {
				moments["opened"] = l.opened
				if !l.closed.IsZero() {
					moments["closed"] = l.closed
				}
				moments["heard on a stream"], moments["newest on a stream"] = l.progress.snapshot()
			}
			return len(moments) == 7
		}
		eventually(t, look, "all of this happens")
		moments["heard"], moments["newest"] = d.progress.snapshot()
		for what, moment := range moments {
			require.True(t, stepless(moment), "%s: %v", what, moment)
		}
		require.Len(t, moments, 9)
		require.NoError(t, e.Shutdown(context.Background()))
	})
}
