// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/arrivals"
)

// half is the part of each message that a slow client sends.
const half = 512 << 10

// slowly sends half of a message and stops.
type slowly func(t *testing.T, r *sharedReceiver)

func overTCP(t *testing.T, address, head string) net.Conn {
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	_, err = io.WriteString(c, head)
	require.NoError(t, err)
	return c
}

func slowBody(encoding string) slowly {
	return func(t *testing.T, r *sharedReceiver) {
		c := overTCP(t, r.httpAddr, fmt.Sprintf("POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n%sContent-Length: %d\r\n\r\n", encoding, 2*half))
		go func() { _, _ = c.Write(make([]byte, half)) }()
	}
}

func slowFrame(t *testing.T, r *sharedReceiver) {
	c := overTCP(t, r.httpAddr, handshake)
	frame := binary.BigEndian.AppendUint64([]byte{0x82, 0x80 | 127}, 2*half)
	frame = append(frame, 0, 0, 0, 0)
	go func() { _, _ = c.Write(append(frame, make([]byte, half)...)) }()
}

// slowCall forwards only the first half of what a client sends.
func slowCall(t *testing.T, r *sharedReceiver) {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", r.grpcAddr)
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(from, to); from.Close() }()
		_, _ = io.CopyN(to, from, half)
	}()
	cc, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); cc.Close() })
	go func() {
		_, _ = ptraceotlp.NewGRPCClient(cc).Export(ctx, ptraceotlp.NewExportRequestFromTraces(spanNamed(strings.Repeat("x", 2*half))))
	}()
}

// Unfinished messages share a budget: clients that stop in the middle make room for others.
func TestSlowClientsHoldNoMemoryThatOthersNeed(t *testing.T) {
	const limit, clients = 1 << 20, 8
	large := make([]byte, half)
	for i := range large {
		large[i] = 'a' + byte(rand.IntN(20))
	}
	for name, slow := range map[string]slowly{
		"HTTP": slowBody(""), "HTTP, zstd": slowBody("Content-Encoding: zstd\r\n"), "HTTP, snappy": slowBody("Content-Encoding: snappy\r\n"),
		"WebSocket": slowFrame, "gRPC": slowCall,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &pipeline{}
			r := prepare(t, p, func(cfg *Config) { cfg.DrainTimeout = time.Second })
			r.arrivals = arrivals.New(limit)
			require.NoError(t, r.Start(context.Background(), nopHost))
			t.Cleanup(func() { _ = r.Shutdown(context.Background()) }) // which has to close their connections
			for range clients {
				slow(t, r)
			}
			eventually(t, func() bool { return r.arrivals.Held() >= limit }, "they have all the room there is")
			for i, dial := range []dialer{dialGRPC, dialWebSocket} {
				eventually(t, func() bool {
					c := dial(t, r, 0)
					if c.send(&otlpstream.Request{ID: 1, Items: 1, Data: payload(t, string(large)+numbered(uint64(i)))}) != nil {
						return false // it may be mistaken for one of them, and retries
					}
					var answer otlpstream.Response
					return c.recv(&answer) == nil && answer.ID == 1 && answer.Code == otlpstream.Success
				}, "another goes on beside them")
			}
			require.Less(t, r.arrivals.Held(), clients*half, "nor do they get what they would take")
			require.LessOrEqual(t, r.arrivals.Held(), 2*limit+clients*2*arrivals.Own)
			require.GreaterOrEqual(t, len(p.seen()), 2)
		})
	}
}
