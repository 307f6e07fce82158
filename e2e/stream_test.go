// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// The transports of otlpstream, as its exporter names them.
const (
	overGRPC      = "grpc"
	overWebSocket = "websocket"
)

func overBoth(t *testing.T, f func(t *testing.T, transport string)) {
	t.Helper()
	for _, transport := range []string{overGRPC, overWebSocket} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			f(t, transport)
		})
	}
}

const (
	// The limit of unacknowledged requests, per signal.
	streamWindow = 32
	// The limit of items in flight when something breaks, of all signals.
	streamWindowItems = 3 * streamWindow * perRequest
	// The number of items acknowledged before something breaks.
	streamProgress = 500
)

// streamSender receives OTLP and streams it. What it has acknowledged is in its queue. Its keepalive timeout is long: a
// busy server that it took for dead would get data twice.
const streamSender = `
receivers: {otlp: {protocols: {grpc: {endpoint: %s}}}}
exporters:
  otlpstream:
    endpoint: %s
    transport: %s
    tls: {insecure: true}
    keepalive: {time: 10s, timeout: 1m}
    in_flight: {requests: 32}
    retry_on_failure: {initial_interval: 50ms, max_interval: 500ms, max_elapsed_time: 0}
    sending_queue: {queue_size: 2000, block_on_overflow: true}
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [otlpstream]}
    logs: {receivers: [otlp], exporters: [otlpstream]}
    metrics: {receivers: [otlp], exporters: [otlpstream]}
`

// streamQueueOnDisk is an overlay for a queue on disk.
const streamQueueOnDisk = `
exporters: {otlpstream: {sending_queue: {storage: file_storage}}}
extensions: {file_storage: {directory: data, create_directory: true}}
service: {extensions: [health_check, file_storage]}
`

// streamServer acknowledges what its destination has accepted.
const streamServer = `
receivers: {otlpstream: {protocols: {grpc: {endpoint: %s}, http: {endpoint: %s}}}}
exporters: {otlp_grpc: {endpoint: %s, tls: {insecure: true}, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}}
service:
  pipelines:
    traces: {receivers: [otlpstream], exporters: [otlp_grpc]}
    logs: {receivers: [otlpstream], exporters: [otlp_grpc]}
    metrics: {receivers: [otlpstream], exporters: [otlp_grpc]}
`

// receiving is a gateway that receives streams.
type receiving struct {
	*collector

	grpc, http string
}

// startReceiving starts a gateway that delivers to a destination.
func startReceiving(t *testing.T, destination string, overlays ...string) *receiving {
	t.Helper()
	r := &receiving{grpc: freeport.Addr(t), http: freeport.Addr(t)}
	configs := append([]string{fmt.Sprintf(streamServer, r.grpc, r.http, destination)}, overlays...)
	r.collector = startDistribution(t, "godwit-gateway", configs...)
	return r
}

// addr returns the address for a transport.
func (r *receiving) addr(transport string) string {
	if transport == overWebSocket {
		return r.http
	}
	return r.grpc
}

// sending is an agent that streams.
type sending struct {
	*collector

	grpc string
}

func startSending(t *testing.T, transport, to string, overlays ...string) *sending {
	t.Helper()
	s := &sending{grpc: freeport.Addr(t)}
	configs := append([]string{fmt.Sprintf(streamSender, s.grpc, to, transport)}, overlays...)
	s.collector = startDistribution(t, "godwit-agent", configs...)
	return s
}

// Metrics of the exporter, without their prefix.
const (
	streamReceived = "received_items"
	streamAcked    = "acked_items"
	streamDropped  = "dropped_items"
	streamResent   = "resent_requests"
	streamOpened   = "streams_opened"
)

func (s *sending) counter(t *testing.T, name string) float64 {
	t.Helper()
	return s.metric(t, "otelcol_exporter_otlpstream_"+name)
}

// settles waits until everything that the sender accepted is acknowledged, and checks that nothing was dropped.
func (s *sending) settles(t *testing.T) {
	t.Helper()
	wait.Until(t, delivery, func() (bool, string) {
		received, acked := s.counter(t, streamReceived), s.counter(t, streamAcked)
		return received == acked, fmt.Sprintf("%v of %v items are acknowledged", acked, received)
	})
	assert.Zero(t, s.counter(t, streamDropped))
}

// flows waits until so many more items are acknowledged to the producer.
func flows(t *testing.T, l *ledger, items int) {
	t.Helper()
	before := l.acknowledged()
	wait.Until(t, delivery, func() (bool, string) {
		more := l.acknowledged() - before
		return more >= items, fmt.Sprintf("%d of %d more acknowledged", more, items)
	})
}

// repeated returns the number of repetitions that arrived, and checks that all numbers were sent.
func (l *ledger) repeated(t *testing.T, destination *otlpserver.Server) (more int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for number, times := range numbers(destination) {
		assert.Less(t, number, l.next, "nobody sent it")
		more += times - 1
	}
	return more
}
