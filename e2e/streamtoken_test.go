// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/wait"
	"github.com/godwit-otel/godwit/internal/certtest"
)

// guard is a token that a gateway requires and an agent sends. gRPC requires TLS for that.
type guard struct {
	dir    string
	number int
}

func newGuard(t *testing.T) *guard {
	t.Helper()
	g := &guard{dir: t.TempDir()}
	certificate, key := certtest.SelfSigned(t)
	for name, text := range map[string]string{"cert.pem": certificate, "key.pem": key, "gateway": "token-0", "agent": "token-0"} {
		g.write(t, name, text)
	}
	return g
}

func (g *guard) file(name string) string { return filepath.Join(g.dir, name) }

func (g *guard) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(g.file(name), []byte(text), 0o600))
}

// expire changes the token that the gateway requires, and renew gives the new one to the agent.
func (g *guard) expire(t *testing.T) {
	t.Helper()
	g.number++
	g.write(t, "gateway", fmt.Sprint("token-", g.number))
}

func (g *guard) renew(t *testing.T) {
	t.Helper()
	g.write(t, "agent", fmt.Sprint("token-", g.number))
}

// gateway and agent return overlays.
func (g *guard) gateway() string {
	return fmt.Sprintf(`
receivers: {otlpstream: {protocols: {grpc: {auth: {authenticator: bearertokenauth}, tls: {cert_file: %s, key_file: %s}}, http: {auth: {authenticator: bearertokenauth}}}}}
extensions: {bearertokenauth: {filename: %s}}
service: {extensions: [health_check, bearertokenauth]}
`, g.file("cert.pem"), g.file("key.pem"), g.file("gateway"))
}

func (g *guard) agent(transport string) string {
	return fmt.Sprintf(`
exporters: {otlpstream: {auth: {authenticator: bearertokenauth}, rebalance: {timeout: 500ms}, tls: %s}}
extensions: {bearertokenauth: {filename: %s}}
service: {extensions: [health_check, file_storage, bearertokenauth]}
`, g.tls(transport), g.file("agent"))
}

func (g *guard) tls(transport string) string {
	if transport == overWebSocket {
		return "{insecure: true}"
	}
	return fmt.Sprintf("{insecure: false, ca_file: %s}", g.file("cert.pem"))
}

// While an agent's token is invalid, its data stay in its queue.
func TestStreamOutlivesAnExpiredToken(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, transport string) {
		g, destination := newGuard(t), otlpserver.New(t, otlpserver.Options{})
		server := startReceiving(t, destination.GRPCAddr(), g.gateway())
		sender := startSending(t, transport, server.addr(transport), streamQueueOnDisk, hasty, g.agent(transport))
		l := &ledger{padding: 100, withMetrics: true}
		stop := l.flood(t, sender.grpc)
		flows(t, l, streamProgress)
		for range 2 {
			g.expire(t)
			wait.Until(t, delivery, func() (bool, string) {
				return sender.counter(t, "queued_items") > streamProgress, "nothing is kept back"
			})
			wait.Pause(t.Context(), badTime/2)
			g.renew(t)
			flows(t, l, streamProgress)
		}
		stop()
		wait.Until(t, delivery, l.arrived(destination))
		sender.settles(t)
		assert.NotZero(t, l.acknowledged())
	})
}
