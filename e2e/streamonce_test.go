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

const deduplicating = "receivers: {otlpstream: {deduplicate: {enabled: true}}}"

// With a receiver that deduplicates, a network that breaks again and again repeats nothing. A killed receiver forgets
// what it has seen; still nothing is lost, and afterwards it deduplicates again.
func TestStreamArrivesOnce(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, transport string) {
		destination := otlpserver.New(t, otlpserver.Options{})
		destination.Always(otlpserver.Step{Delay: 2 * time.Millisecond}) // so that much is in flight when something breaks
		server := startReceiving(t, destination.GRPCAddr(), deduplicating)
		w := wire.New(t, server.addr(transport))
		sender := startSending(t, transport, w.Addr(), streamQueueOnDisk)
		l := &ledger{padding: 100, withMetrics: true}
		stop := l.flood(t, sender.grpc)
		cut := func() {
			flows(t, l, streamProgress)
			before := w.Cuts()
			w.CutAfter(func() int { return 1 + rand.IntN(longestCut) })
			w.Cut()
			wait.Until(t, delivery, func() (bool, string) {
				return w.Cuts() >= before+cuts, fmt.Sprintf("%d of %d cuts", w.Cuts()-before, cuts)
			})
			w.CutAfter(nil)
			flows(t, l, streamProgress)
		}
		settle := func() int {
			stop()
			wait.Until(t, delivery, l.arrived(destination))
			sender.settles(t)
			return l.repeated(t, destination)
		}
		cut()
		assert.Zero(t, settle(), "cuts repeat nothing")
		kept := server.metric(t, "otelcol_receiver_otlpstream_duplicate_requests")
		assert.NotZero(t, sender.counter(t, streamResent))

		stop = l.flood(t, sender.grpc)
		flows(t, l, streamProgress)
		server.Kill()
		server.Restart()
		server.ready()
		flows(t, l, streamProgress)
		killed := settle()
		assert.LessOrEqual(t, killed, streamWindowItems, "what was on its way may arrive again")

		stop = l.flood(t, sender.grpc)
		cut()
		assert.Equal(t, killed, settle(), "cuts repeat nothing after that either")

		stop = l.flood(t, sender.grpc)
		flows(t, l, streamProgress)
		sender.Kill()
		stop()
		sender.Restart()
		sender.ready()
		again := settle() - killed
		assert.LessOrEqual(t, again, streamWindowItems, "what was on its way may arrive again")
		t.Logf("%d items acknowledged; %v requests kept from the pipeline before the first kill; arrived again: %d for the gateway's kill, %d for the agent's",
			l.acknowledged(), kept, killed, again)
	})
}
