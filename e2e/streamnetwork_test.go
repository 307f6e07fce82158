// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/wait"
	"github.com/godwit-otel/godwit/e2e/wire"
)

const (
	// The number of cut TCP connections; more would take long.
	cuts = 20
	// The longest life of a connection meanwhile, in bytes that the client sends.
	longestCut = 20_000
	// In bytes per second: much less than the producer sends.
	slowRate = 20_000
	// How long the network stays slow.
	slowTime = 3 * time.Second
)

// soonDoubtful sends keepalives to a silent server after a second; gRPC makes that ten.
const soonDoubtful = "exporters: {otlpstream: {keepalive: {time: 1s, timeout: 1s}}}"

// Whatever the network between an agent and its gateway does to connections, it costs time but no data.
func TestStreamOverABadNetwork(t *testing.T) {
	t.Parallel()
	found := func(t *testing.T, w *wire.Wire, l *ledger, spoil func()) {
		t.Helper()
		before := w.Accepted()
		spoil()
		wait.Until(t, delivery, func() (bool, string) {
			return w.Accepted() > before, "the sender has not found out"
		})
		w.Swallow(false)
		flows(t, l, streamProgress)
	}
	f := func(name string, spoil func(t *testing.T, w *wire.Wire, l *ledger)) {
		for _, transport := range []string{overGRPC, overWebSocket} {
			t.Run(name+"/"+transport, func(t *testing.T) {
				t.Parallel()
				destination := otlpserver.New(t, otlpserver.Options{})
				server := startReceiving(t, destination.GRPCAddr())
				w := wire.New(t, server.addr(transport))
				sender := startSending(t, transport, w.Addr(), soonDoubtful)
				l := &ledger{padding: 100, withMetrics: true}
				stop := l.flood(t, sender.grpc)
				flows(t, l, streamProgress)
				spoil(t, w, l)
				flows(t, l, streamProgress)
				stop()
				wait.Until(t, delivery, l.arrived(destination))
				sender.settles(t)
				assert.LessOrEqual(t, l.repeated(t, destination), w.Accepted()*streamWindowItems)
			})
		}
	}
	f("black hole", func(t *testing.T, w *wire.Wire, l *ledger) { found(t, w, l, func() { w.Swallow(true) }) })
	f("half open", func(t *testing.T, w *wire.Wire, l *ledger) { found(t, w, l, w.Forget) })
	f("cut at random bytes", func(t *testing.T, w *wire.Wire, _ *ledger) {
		w.CutAfter(func() int { return 1 + rand.IntN(longestCut) })
		w.Cut()
		wait.Until(t, delivery, func() (bool, string) {
			return w.Cuts() >= cuts, fmt.Sprintf("%d of %d cuts", w.Cuts(), cuts)
		})
		w.CutAfter(nil)
	})
	f("slow reader", func(t *testing.T, w *wire.Wire, _ *ledger) {
		w.Slow(slowRate)
		wait.Pause(t.Context(), slowTime)
		w.Slow(0)
	})
}
