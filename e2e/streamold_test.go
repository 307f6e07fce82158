// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// old is the configuration of a Collector of 2021.
const old = `
receivers: {otlp: {protocols: {grpc: {endpoint: %s}, http: {endpoint: %s}}}}
exporters: {otlp: {endpoint: %s, insecure: true, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}}
service: {pipelines: {traces: {receivers: [otlp], exporters: [otlp]}, logs: {receivers: [otlp], exporters: [otlp]}}}
`

// old2021 returns the path of a Collector of 2021. It skips the test if none is built.
func old2021(t *testing.T) string {
	t.Helper()
	path := filepath.Join(repository.Root(t), "bin", "rivals", "oldcollector")
	if _, err := os.Stat(path); err != nil {
		t.Skip("no Collector of 2021 to test with: make e2e-old builds one")
	}
	return path
}

// startOld2021 starts a Collector of 2021 that sends to an address.
func startOld2021(t *testing.T, path, to string) (p *process.Process, grpc, http string) {
	t.Helper()
	grpc, http = freeport.Addr(t), freeport.Addr(t)
	p = process.Start(t, process.Settings{Path: path, Args: []string{"--config", configFile(t, fmt.Sprintf(old, grpc, http, to)), "--metrics-level", "none"}})
	return p, grpc, http
}

// A server without streaming that knows only gzip gets all data in standard requests with gzip.
func TestStreamExporterServesACollectorOf2021(t *testing.T) {
	t.Parallel()
	path := old2021(t)
	overBoth(t, func(t *testing.T, transport string) {
		destination := otlpserver.New(t, otlpserver.Options{})
		server, grpc, http := startOld2021(t, path, destination.GRPCAddr())
		to := map[string]string{overGRPC: grpc, overWebSocket: http}[transport]
		sender := startSending(t, transport, to, streamQueueOnDisk)
		l := &ledger{padding: 100}
		stop := l.flood(t, sender.grpc)
		flows(t, l, streamProgress)
		wait.Until(t, delivery, func() (bool, string) {
			return sender.counter(t, streamAcked) > streamProgress, "nothing is delivered"
		})
		server.Kill()
		flows(t, l, perRequest) // into the queue
		server.Restart()
		flows(t, l, streamProgress)
		stop()
		wait.Until(t, delivery, l.arrived(destination))
		sender.settles(t)
		assert.Contains(t, sender.Output(), "The server does not accept the compression")
		assert.Zero(t, sender.Stop(syscall.SIGTERM, drainTime))
	})
}

// Our receiver accepts all requests of its exporter.
func TestStreamReceiverServesACollectorOf2021(t *testing.T) {
	t.Parallel()
	path := old2021(t)
	destination := otlpserver.New(t, otlpserver.Options{})
	server := startReceiving(t, destination.GRPCAddr())
	_, grpc, _ := startOld2021(t, path, server.grpc)
	l := &ledger{padding: 100}
	stop := l.flood(t, grpc)
	flows(t, l, streamProgress)
	stop()
	wait.Until(t, delivery, l.arrived(destination))
	require.NotZero(t, l.acknowledged())
}

// oldBuilds names the environment variable with a directory of an earlier version's binaries.
const oldBuilds = "GODWIT_OLD_BIN"

// Agents and gateways are not upgraded at once: with an earlier version at either end nothing is lost, whichever end is
// killed.
func TestStreamBetweenVersions(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(oldBuilds)
	if dir == "" {
		t.Skipf("no earlier version to test with: set %s to a directory with its binaries", oldBuilds)
	}
	here := process.Binary(t, "godwit-agent")
	for name, builds := range map[string][2]string{
		"old agent":   {dir, filepath.Dir(here)},
		"old gateway": {filepath.Dir(here), dir},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overBoth(t, func(t *testing.T, transport string) { betweenVersions(t, transport, builds[0], builds[1]) })
		})
	}
}

func betweenVersions(t *testing.T, transport, agent, gateway string) {
	t.Helper()
	destination := otlpserver.New(t, otlpserver.Options{})
	server := &receiving{grpc: freeport.Addr(t), http: freeport.Addr(t)}
	server.collector = startBinary(t, filepath.Join(gateway, "godwit-gateway"), fmt.Sprintf(streamServer, server.grpc, server.http, destination.GRPCAddr()))
	sender := &sending{grpc: freeport.Addr(t)}
	sender.collector = startBinary(t, filepath.Join(agent, "godwit-agent"), fmt.Sprintf(streamSender, sender.grpc, server.addr(transport), transport), streamQueueOnDisk)
	l := &ledger{padding: 100, withMetrics: true}
	crashes := crashCount(t, 4)
	for crash := range crashes {
		stop := l.flood(t, sender.grpc)
		flows(t, l, streamProgress)
		victim := server.collector
		if crash%2 == 1 {
			victim = sender.collector
		}
		victim.Kill()
		if victim == sender.collector {
			stop()
		}
		victim.Restart()
		victim.ready()
		stop()
	}
	// TestStreamQueueOutlivesChangesOfSettings covers an upgrade with a full queue; here neither end is upgraded.
	wait.Until(t, delivery, l.arrived(destination))
	sender.settles(t)
	t.Logf("%d crashes: %d items acknowledged, %d arrived again", crashes, l.acknowledged(), l.repeated(t, destination))
}
