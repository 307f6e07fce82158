// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
)

// newName makes names that were never used before.
var newName atomic.Int64

const (
	writeHead = "POST /api/v1/write HTTP/1.1\r\nHost: gateway\r\n"
	oldWrite  = writeHead + "Content-Type: application/x-protobuf\r\nX-Prometheus-Remote-Write-Version: 0.1.0\r\n"
	newWrite  = writeHead + "Content-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request\r\nX-Prometheus-Remote-Write-Version: 2.0.0\r\n"
	otlpHead  = "POST /v1/metrics HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/x-protobuf\r\n"
)

// attacked runs a case, the i-th of its kind, against a gateway of its own.
func attacked(t *testing.T, i int, name string, attack func(ctx context.Context, in inputs)) {
	t.Helper()
	if !tried(i, name) {
		return
	}
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		s, in := besiegeGateway(t)
		s.withstand(func(ctx context.Context) { attack(ctx, in) })
	})
}

// Malicious clients of remote write do not affect other clients.
func TestHostileWriters(t *testing.T) {
	t.Parallel()
	for i, peer := range httpPeers {
		attacked(t, i, peer.name, func(ctx context.Context, in inputs) {
			peer.do(ctx, in.write, oldWrite+"Content-Encoding: snappy\r\n")
		})
	}
	for i, b := range writeBodies {
		attacked(t, i, b.name, func(ctx context.Context, in inputs) {
			head, encoding := oldWrite, "snappy"
			if b.v2 {
				head = newWrite
			}
			if b.encoding != "" {
				encoding = b.encoding
			}
			var body []byte
			if b.raw != nil {
				body = b.raw()
			} else {
				body = pack(encoding, b.body(), 1)
			}
			pelt(ctx, in.write, head+"Content-Encoding: "+encoding+"\r\n", body)
		})
	}
	attacked(t, 0, "wrong types and encodings", func(ctx context.Context, in inputs) {
		again(ctx, func() {
			for _, head := range []string{
				writeHead + "Content-Type: text/plain\r\n", writeHead + "Content-Type: application/x-protobuf;proto=nothing\r\n",
				oldWrite + "Content-Encoding: br\r\n", oldWrite + "Content-Encoding: snappy, snappy, gzip\r\n", newWrite, writeHead,
				"PUT /api/v1/write HTTP/1.1\r\nHost: x\r\n", "GET /../../etc HTTP/1.1\r\nHost: x\r\n", "POST /api/v1/write HTTP/1.0\r\n",
			} {
				shout(ctx, in.write, []byte(head+"Content-Length: 3\r\nConnection: close\r\n\r\nabc"))
			}
		})
	})
}

// Malicious clients of OTLP over HTTP do not affect other clients.
func TestHostileOTLPClients(t *testing.T) {
	t.Parallel()
	for i, peer := range httpPeers {
		attacked(t, i, peer.name, func(ctx context.Context, in inputs) { peer.do(ctx, in.http, otlpHead) })
	}
	for i, b := range otlpBodies {
		attacked(t, i, b.name, func(ctx context.Context, in inputs) {
			if slices.Contains(fresh, b.name) {
				again(ctx, func() { peltOnce(ctx, in.http, otlpHead, b.body()) })
				return
			}
			pelt(ctx, in.http, otlpHead, b.body())
		})
	}
	for i, encoding := range []string{"gzip", "zstd", "snappy"} {
		attacked(t, i+1, encoding+" bomb", func(ctx context.Context, in inputs) {
			pelt(ctx, in.http, otlpHead+"Content-Encoding: "+encoding+"\r\n", pack(encoding, make([]byte, 1<<20), bombTimes(encoding)))
		})
	}
	attacked(t, 0, "nested JSON", func(ctx context.Context, in inputs) {
		body := make([]byte, 4<<20)
		for i := range body {
			body[i] = '['
		}
		pelt(ctx, in.http, "POST /v1/metrics HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n", append([]byte(`{"resourceMetrics":`), body...))
	})
}

func peltOnce(ctx context.Context, addr, head string, body []byte) {
	shout(ctx, addr, append([]byte(head+"Connection: close\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...))
}

// bombTimes returns the size of a bomb in megabytes: snappy compresses to a twentieth at best.
func bombTimes(encoding string) int {
	if encoding == "snappy" {
		return 64
	}
	return 512
}
