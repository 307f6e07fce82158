// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// A gateway that is killed behind a proxy, again and again, loses nothing: an error that the proxy returns for it must
// not count against the request in flight. Each proxy has its configuration of docs/proxies.md.
func TestStreamSurvivesCrashesBehindProxies(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"nginx", "haproxy", "envoy"} {
		for _, transport := range []string{overGRPC, overWebSocket} {
			t.Run(program+"/"+transport, func(t *testing.T) {
				t.Parallel()
				destination := otlpserver.New(t, otlpserver.Options{})
				servers := []*receiving{startReceiving(t, destination.GRPCAddr()), startReceiving(t, destination.GRPCAddr())}
				b := startBalancer(t, program, servers...)
				sender := startSending(t, transport, b.addr(transport), streamQueueOnDisk)
				l := &ledger{padding: 100, withMetrics: true}
				stop := l.flood(t, sender.grpc)
				flows(t, l, streamProgress)
				crashes := crashCount(t, 4)
				for crash := range crashes {
					victim := servers[crash%len(servers)]
					victim.Kill()
					flows(t, l, streamProgress) // over the other server, or into the queue
					wait.Pause(t.Context(), rand.N(longestLife))
					victim.Restart()
					victim.ready()
					flows(t, l, streamProgress)
				}
				stop()
				wait.Until(t, delivery, l.arrived(destination))
				sender.settles(t)
				again := l.repeated(t, destination)
				assert.LessOrEqual(t, again, crashes*streamWindowItems)
				assert.Zero(t, sender.Stop(syscall.SIGTERM, drainTime))
				t.Logf("%d crashes: %d items acknowledged, %d arrived again", crashes, l.acknowledged(), again)
			})
		}
	}
}
