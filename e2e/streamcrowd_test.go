// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	// The number of clients, all in one process, each with a connection and a queue of its own.
	crowd = 1000
	// The requests that each client gets before and during the outage.
	crowdRequests = 3
)

// crowdConfig configures a thousand exporters with the same input.
func crowdConfig(from, to, transport string) string {
	var names []string
	var exporters strings.Builder
	for i := range crowd {
		name := fmt.Sprintf("otlpstream/%d", i)
		names = append(names, name)
		fmt.Fprintf(&exporters, "  %s: {endpoint: %s, transport: %s, tls: {insecure: true}, keepalive: {time: 10s, timeout: 1m}, streams: 1, write_buffer_size: 4096, "+
			"retry_on_failure: {initial_interval: 100ms, max_interval: 1s}}\n", name, to, transport)
	}
	return fmt.Sprintf("receivers: {otlp: {protocols: {grpc: {endpoint: %s}}}}\nexporters:\n%s"+
		"service: {pipelines: {traces: {receivers: [otlp], exporters: [%s]}}}\n", from, exporters.String(), strings.Join(names, ", "))
}

const crowdServer = `
receivers: {otlpstream: {protocols: {grpc: {endpoint: %s}, http: {endpoint: %s}}}}
exporters: {nop: }
service: {pipelines: {traces: {receivers: [otlpstream], exporters: [nop]}}}
`

// When a server comes back, all its clients reconnect at once.
func TestStreamServerOutlivesACrowdThatReconnects(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{overGRPC, overWebSocket} { // one crowd at a time
		t.Run(transport, func(t *testing.T) { crowdReconnects(t, transport) })
	}
}

func crowdReconnects(t *testing.T, transport string) {
	t.Helper()
	server := &receiving{grpc: freeport.Addr(t), http: freeport.Addr(t)}
	server.collector = startDistribution(t, "godwit-gateway", fmt.Sprintf(crowdServer, server.grpc, server.http))
	clients := &sending{grpc: freeport.Addr(t)}
	clients.collector = startDistribution(t, "godwit-agent", crowdConfig(clients.grpc, server.addr(transport), transport))
	conn, l := dial(t, clients.grpc), &ledger{padding: 100}
	send := func() {
		t.Helper()
		for i := range crowdRequests {
			_, err := ptraceotlp.NewGRPCClient(conn).Export(t.Context(), ptraceotlp.NewExportRequestFromTraces(l.traces(int64(i))))
			require.NoError(t, err)
		}
	}
	const each = crowd * crowdRequests * perRequest
	accepted := func() float64 { return server.metric(t, "otelcol_receiver_accepted_spans") }
	resent := 0.0
	once := func(why string) {
		t.Helper()
		before := resent
		resent = clients.counter(t, streamResent)
		// On a busy machine an acknowledgement may come after the stream was closed: what was sent again then arrived
		// twice.
		again := accepted() - each
		assert.GreaterOrEqual(t, again, 0.0)
		assert.LessOrEqual(t, again, (resent-before)*perRequest, why)
	}
	send()
	clients.settles(t)
	once("there is one server")

	server.Kill()
	send()
	server.Restart()
	server.ready()
	back := time.Now()
	wait.Until(t, delivery, func() (bool, string) {
		got := accepted()
		return got >= each, fmt.Sprintf("%v of %v items are there", got, each)
	})
	took := time.Since(back)
	clients.settles(t)
	once("nothing was in flight when it died, so nothing comes twice")
	assert.InDelta(t, 2*each, clients.counter(t, streamAcked), 0)
	memory := server.Usage().PeakRSS
	assert.Less(t, memory, int64(512<<20))
	t.Logf("%d clients were back and served within %v; %v requests were sent again; the server took %.0f MiB", crowd, took, resent, mib(memory))
}
