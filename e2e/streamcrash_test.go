// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// A destination records all that arrives, so it is replaced after this many crashes.
const crashesOfOneLedger = 20

// shutdownTimeout is the exporter's default limit to wait for acknowledgements.
const shutdownTimeout = 10 * time.Second

func crashCount(t *testing.T, few int) int {
	t.Helper()
	text := os.Getenv(crashesVariable)
	if text == "" {
		return few
	}
	crashes, err := strconv.Atoi(text)
	require.NoError(t, err, crashesVariable)
	return crashes
}

// Whichever end is killed, and whenever, acknowledged data arrive, and only what was in flight arrives twice.
func TestStreamSurvivesCrashes(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, transport string) {
		for left := crashCount(t, 3); left > 0; left -= crashesOfOneLedger {
			streamCrashes(t, transport, min(left, crashesOfOneLedger), streamWindowItems)
		}
	})
}

// batching makes the queue merge requests to batches of this many items.
const (
	batchItems = 100
	batching   = "exporters: {otlpstream: {sending_queue: {batch: {flush_timeout: 20ms, min_size: 100, max_size: 100}}}}"
)

// A queue on disk with batching keeps requests until their batch is acknowledged.
func TestStreamBatchesSurviveCrashes(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, transport string) {
		for left := crashCount(t, 3); left > 0; left -= crashesOfOneLedger {
			streamCrashes(t, transport, min(left, crashesOfOneLedger), 3*streamWindow*batchItems, batching)
		}
	})
}

// streamCrashes kills the ends in turn, and limits how much may arrive twice after each crash.
func streamCrashes(t *testing.T, transport string, crashes, onTheWay int, overlays ...string) {
	t.Helper()
	t.Run(fmt.Sprintf("%d crashes", crashes), func(t *testing.T) {
		destination := otlpserver.New(t, otlpserver.Options{})
		server := startReceiving(t, destination.GRPCAddr())
		sender := startSending(t, transport, server.addr(transport), append([]string{streamQueueOnDisk}, overlays...)...)
		l := &ledger{padding: 100, withMetrics: true}
		for crash := range crashes {
			destination.Always(otlpserver.Step{Delay: rand.N(5 * time.Millisecond)})
			stop := l.flood(t, sender.grpc)
			flows(t, l, streamProgress)
			wait.Pause(t.Context(), rand.N(longestLife))
			victim := server.collector
			if crash%3 == 2 {
				victim = sender.collector
			}
			victim.Kill()
			if victim == sender.collector {
				stop() // its connections do not recover: see dial
			}
			wait.Pause(t.Context(), rand.N(longestLife))
			victim.Restart()
			victim.ready()
			stop()
		}
		wait.Until(t, delivery, l.arrived(destination))
		sender.settles(t)
		again := l.repeated(t, destination)
		assert.LessOrEqual(t, again, crashes*onTheWay)
		assert.Zero(t, sender.Stop(syscall.SIGTERM, drainTime))
		assert.Zero(t, server.Stop(syscall.SIGTERM, drainTime))
		assert.Equal(t, again, l.repeated(t, destination), "an end in order repeats nothing")
		t.Logf("%d crashes: %d items acknowledged, %d arrived again", crashes, l.acknowledged(), again)
	})
}

// A shutdown at any moment delivers what is in flight, and nothing twice.
func TestStreamEndsInOrderAtAnyMoment(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, transport string) {
		destination := otlpserver.New(t, otlpserver.Options{})
		destination.Always(otlpserver.Step{Delay: 2 * time.Millisecond})
		server := startReceiving(t, destination.GRPCAddr())
		sender := startSending(t, transport, server.addr(transport))
		l := &ledger{padding: 100, withMetrics: true}
		for round := range crashCount(t, 3) {
			stop := l.flood(t, sender.grpc)
			flows(t, l, perRequest)
			wait.Pause(t.Context(), rand.N(longestLife))
			victim := sender.collector
			if round%2 == 1 {
				victim = server.collector
			}
			if victim == sender.collector {
				assert.Zero(t, victim.Stop(syscall.SIGTERM, drainTime))
				stop()
				wait.Until(t, delivery, l.arrived(destination)) // without a queue on disk, the shutdown must have delivered it
			} else {
				assert.Zero(t, victim.Stop(syscall.SIGTERM, drainTime))
			}
			victim.Restart()
			victim.ready()
			stop()
		}
		wait.Until(t, delivery, l.arrived(destination))
		sender.settles(t)
		assert.Zero(t, l.repeated(t, destination))
	})
}

// With its queue on disk, an agent's shutdown does not wait for a gateway that is down, for any signal.
func TestStreamEndsAtOnceWhereTheGatewayIsAway(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, transport string) {
		destination := otlpserver.New(t, otlpserver.Options{})
		server := startReceiving(t, destination.GRPCAddr())
		sender := startSending(t, transport, server.addr(transport), streamQueueOnDisk,
			"exporters: {otlpstream: {sending_queue: {queue_size: 50, block_on_overflow: false}}}")
		server.Kill()
		l := &ledger{padding: 100, withMetrics: true}
		l.fill(t, dial(t, sender.grpc), 3, "queue is full")
		sender.WaitLog(delivery, "The destination does not answer")
		begun := time.Now()
		assert.Zero(t, sender.Stop(syscall.SIGTERM, drainTime))
		t.Logf("it took %v to end", time.Since(begun))
		assert.Less(t, time.Since(begun), shutdownTimeout)
		server.Restart()
		server.ready()
		sender.Restart()
		wait.Until(t, delivery, l.arrived(destination))
		sender.settles(t)
		assert.Zero(t, l.repeated(t, destination))
	})
}
