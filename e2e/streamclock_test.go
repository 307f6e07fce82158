// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/wait"
	"github.com/godwit-otel/godwit/e2e/wire"
)

// hasty has an acknowledgement timeout of one second, so that a few seconds are long.
const hasty = "exporters: {otlpstream: {ack_timeout: 1s}}"

// noQueue makes senders wait until their data are delivered.
const noQueue = "exporters: {otlpstream: {sending_queue: {enabled: false}}}"

// The duration of a fault: several times the acknowledgement timeout.
const badTime = 6 * time.Second

// hop is an agent, its gateway, the network between them and the destination.
type hop struct {
	destination *otlpserver.Server
	server      *receiving
	wire        *wire.Wire
	sender      *sending
	ledger      *ledger
}

// Time alone loses nothing: whatever stalls, for however long, what the agent has acknowledged arrives when it goes on.
func TestStreamLosesNothingByTheClock(t *testing.T) {
	t.Parallel()
	run := func(name string, bad func(t *testing.T, l *hop), overlays ...string) {
		for _, transport := range []string{overGRPC, overWebSocket} {
			t.Run(name+"/"+transport, func(t *testing.T) {
				t.Parallel()
				l := &hop{destination: otlpserver.New(t, otlpserver.Options{}), ledger: &ledger{padding: 100, withMetrics: true}}
				l.server = startReceiving(t, l.destination.GRPCAddr())
				l.wire = wire.New(t, l.server.addr(transport))
				l.sender = startSending(t, transport, l.wire.Addr(), append([]string{hasty}, overlays...)...)
				stop := l.ledger.flood(t, l.sender.grpc)
				flows(t, l.ledger, streamProgress)
				bad(t, l)
				flows(t, l.ledger, streamProgress)
				stop()
				wait.Until(t, delivery, l.ledger.arrived(l.destination))
				if !slices.Contains(overlays, noQueue) { // without a queue, a client that times out takes back what is in flight
					l.sender.settles(t)
				}
				t.Logf("%d items acknowledged, %d arrived again", l.ledger.acknowledged(), l.ledger.repeated(t, l.destination))
			})
		}
	}
	f := func(name string, bad func(t *testing.T, l *hop), overlays ...string) {
		run(name, bad, append([]string{streamQueueOnDisk}, overlays...)...)
	}
	blocked := func(t *testing.T, l *hop) {
		l.destination.Always(otlpserver.Step{Delay: 2 * badTime})
		wait.Pause(t.Context(), badTime)
	}
	f("blocked", func(t *testing.T, l *hop) {
		blocked(t, l)
		l.destination.Always(otlpserver.Step{})
	})
	for queue, overlay := range map[string]string{"a queue in memory": hasty, "no queue": noQueue} {
		run("blocked before "+queue, func(t *testing.T, l *hop) {
			blocked(t, l)
			l.destination.Always(otlpserver.Step{})
		}, overlay)
		run("stopped before "+queue, func(t *testing.T, l *hop) {
			l.server.Signal(syscall.SIGSTOP)
			wait.Pause(t.Context(), badTime)
			l.server.Signal(syscall.SIGCONT)
		}, overlay)
	}
	f("blocked, then killed", func(t *testing.T, l *hop) {
		blocked(t, l)
		l.server.Kill()
		l.destination.Always(otlpserver.Step{})
		l.server.Restart()
		l.server.ready()
	})
	f("blocked, then the agent is killed", func(t *testing.T, l *hop) {
		blocked(t, l)
		l.sender.Kill()
		l.destination.Always(otlpserver.Step{})
		l.sender.Restart()
		l.sender.ready()
		stop := l.ledger.flood(t, l.sender.grpc) // connections from before the restart do not recover: see dial
		flows(t, l.ledger, streamProgress)
		stop()
	})
	f("refused for now", func(t *testing.T, l *hop) {
		l.destination.Always(otlpserver.Step{Code: codes.Unavailable})
		wait.Pause(t.Context(), badTime)
		l.destination.Always(otlpserver.Step{})
	})
	f("stopped", func(t *testing.T, l *hop) {
		l.server.Signal(syscall.SIGSTOP)
		wait.Pause(t.Context(), badTime)
		l.server.Signal(syscall.SIGCONT)
	})
	f("slow", func(t *testing.T, l *hop) {
		l.wire.Slow(slowRate)
		wait.Pause(t.Context(), badTime)
		l.wire.Slow(0)
	})
	f("full", func(t *testing.T, l *hop) {
		l.server.Kill()
		l.ledger.fill(t, dial(t, l.sender.grpc), 10, "queue is full")
		wait.Pause(t.Context(), badTime)
		l.server.Restart()
		l.server.ready()
	}, "exporters: {otlpstream: {sending_queue: {queue_size: 100, block_on_overflow: false}}}")
}
