// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// growth returns the maximum growth of the memory in use while f ran.
func growth(f func()) int64 {
	inUse := func() int64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapInuse + stats.StackInuse)
	}
	runtime.GC()
	runtime.GC() // the second frees what pools discarded in the first
	before, most := inUse(), int64(0)
	over := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			most = max(most, inUse())
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	f()
	close(over)
	watching.Wait()
	return most - before
}

// shooter opens a stream and returns a function that sends one more message on it. The responses are not read.
type shooter func(ctx context.Context, t *testing.T, r *sharedReceiver, request otlpstream.Request) (shoot func() error)

func overGRPC(options ...grpc.CallOption) shooter {
	return func(ctx context.Context, t *testing.T, r *sharedReceiver, request otlpstream.Request) func() error {
		ctx = metadata.AppendToOutgoingContext(ctx, otlpstream.HeaderCaps, otlpstream.AllCaps.String())
		options := append(options, grpc.ForceCodecV2(otlpstream.Codec()))
		stream, err := grpcClient(t, r).NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
			otlpstream.Traces.StreamMethod(), options...)
		require.NoError(t, err)
		var prepared grpc.PreparedMsg // compressed once, so that it costs the server more than the client
		require.NoError(t, prepared.Encode(stream, &request))
		return func() error { return stream.SendMsg(&prepared) }
	}
}

func overWebSocket(compression otlpstream.Compression) shooter {
	return func(ctx context.Context, t *testing.T, r *sharedReceiver, request otlpstream.Request) func() error {
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		ws, _, err := websocket.Dial(ctx, "ws://"+r.httpAddr+otlpstream.Traces.WebSocketPath(), &websocket.DialOptions{
			HTTPHeader: http.Header{http.CanonicalHeaderKey(otlpstream.HeaderCaps): {otlpstream.AllCaps.String()}},
			HTTPClient: &http.Client{Transport: transport},
		})
		require.NoError(t, err)
		context.AfterFunc(ctx, func() { ws.CloseNow() })
		frame, err := compression.AppendFrame(nil, request.AppendHeader(nil), request.Data)
		require.NoError(t, err)
		return func() error { return ws.Write(ctx, websocket.MessageBinary, frame) }
	}
}

// The pipeline is blocked, and clients send as much as they can: requests of the maximum size, some of which compress
// very well. Memory stays below the limit that the README states.
func TestMemoryIsBoundedUnderHostileClients(t *testing.T) {
	const (
		message = 1 << 20 // the minimum for gRPC
		streams = 8
		each    = 24
		// In flight, encoded and decoded; and per stream the data sent ahead, an encoded message, and a decompressed
		// one.
		limit = 4*message + 4*message + streams*3*message
		// Garbage is collected when there is as much of it as of the rest, and more is added meanwhile. The refused
		// requests are larger than all of this.
		withGarbage = 3 * limit
	)
	for name, open := range map[string]shooter{
		"gRPC": overGRPC(), "gRPC, gzip": overGRPC(grpc.UseCompressor(gzip.Name)),
		"WebSocket": overWebSocket(otlpstream.NoCompression), "WebSocket, gzip": overWebSocket(otlpstream.Gzip),
		"WebSocket, zstd": overWebSocket(otlpstream.Zstd),
	} {
		t.Run(name, func(t *testing.T) {
			gate := make(chan struct{})
			release := sync.OnceFunc(func() { close(gate) })
			p := &pipeline{do: func(context.Context, string) error { <-gate; return nil }}
			r := start(t, p, func(cfg *Config) {
				grpcOf(cfg).MaxRecvMsgSizeMiB = message >> 20
				httpOf(cfg).MaxRequestBodySize = message
				cfg.InFlight.Bytes, cfg.InFlight.BytesPerStream = 4*message, message
				cfg.Streams.Max = streams
				cfg.DrainTimeout = time.Second
			})
			t.Cleanup(release)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			bomb := otlpstream.Request{ID: 1, Items: 1, Data: payload(t, strings.Repeat("a", message-200))}
			var shot atomic.Int64
			var shooting sync.WaitGroup
			var shoots []func() error
			for range streams {
				shoots = append(shoots, open(ctx, t, r, bomb))
			}
			grown := growth(func() {
				for _, shoot := range shoots {
					shooting.Go(func() {
						for range 2 * each { // socket buffers would hold thousands
							if shoot() != nil {
								return
							}
							shot.Add(1)
						}
					})
				}
				for n := int64(0); n < streams*each; n = refused(r) { // as long as there are more
					eventually(t, func() bool { return refused(r) > n }, "they are turned away")
				}
			})
			t.Logf("%d messages of %d KiB were sent, %d refused; memory grew by %d KiB", shot.Load(), message>>10, refused(r), grown>>10)
			require.Less(t, grown, int64(withGarbage))
			require.LessOrEqual(t, r.pipelines.admission.InFlight(), 4*message)
			cancel()
			shooting.Wait()
			release()
			eventually(t, func() bool { return r.pipelines.admission.InFlight() == 0 && r.Snapshot().Streams == 0 }, "nothing is left behind")
			c := dialGRPC(t, r, 0)
			c.export(1, "still there")
			require.Equal(t, otlpstream.Response{ID: 1}, c.answer())
		})
	}
}

// refused returns how many requests were refused for lack of room.
func refused(r *sharedReceiver) (n int64) {
	for _, c := range r.Snapshot().Clients {
		n += c.Total.Refused
	}
	return n
}

func TestAClientThatNeverReadsIsCutOff(t *testing.T) {
	for name, open := range map[string]shooter{"gRPC": overGRPC(), "WebSocket": overWebSocket(otlpstream.NoCompression)} {
		t.Run(name, func(t *testing.T) {
			p := &pipeline{do: func(_ context.Context, name string) error {
				if name == "deaf" {
					return errors.New(strings.Repeat("an answer that takes room ", 1000))
				}
				return nil
			}}
			r := start(t, p, func(cfg *Config) {
				cfg.InFlight.RequestsPerStream = 4
				cfg.DrainTimeout = 100 * time.Millisecond
			})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			shoot := open(ctx, t, r, otlpstream.Request{ID: 1, Items: 1, Data: payload(t, "deaf")})
			var shooting sync.WaitGroup
			shooting.Go(func() {
				for shoot() == nil {
				}
			})
			eventually(t, func() bool { return r.Snapshot().Streams == 1 }, "it is there")
			eventually(t, func() bool { return r.Snapshot().Streams == 0 && r.pipelines.admission.InFlight() == 0 },
				"its answers fill all buffers, then it has to go; and what nobody hears takes no room from others")
			c := dialGRPC(t, r, 0)
			c.export(1, "good")
			require.Equal(t, otlpstream.Response{ID: 1}, c.answer())
			require.NoError(t, c.finish())
			c.end()
			begun := time.Now()
			require.NoError(t, r.Shutdown(context.Background()))
			require.Less(t, time.Since(begun), patience/2, "nor does it hold up the end")
			cancel() // over gRPC the client only notices the end of its stream when it reads
			shooting.Wait()
		})
	}
}

// FuzzWebSocket sends anything after the handshake: frames or something similar, until the end.
func FuzzWebSocket(f *testing.F) {
	p := &pipeline{}
	r := start(f, p)
	request := otlpstream.Request{ID: 1, Items: 1, Data: payload(f, "x")}
	for c := range otlpstream.Zstd + 1 {
		frame, err := c.AppendFrame(nil, request.AppendHeader(nil), request.Data)
		require.NoError(f, err)
		f.Add(masked(frame))
		f.Add(append(masked(frame), masked(nil)...)) // with its half-close
	}
	packed := request
	otlpstream.NewPacker().Pack(&packed)
	f.Add(append(masked(append(packed.AppendHeader([]byte{0}), packed.Data...)), masked([]byte{7, 1})...))
	f.Add([]byte("\x89\x80\x00\x00\x00\x00\x88\x82\x00\x00\x00\x00\x03\xe8"))     // a ping and a close
	f.Add([]byte("\x02\x81\x00\x00\x00\x00\x00\x80\x82\x00\x00\x00\x00\x08\x05")) // a request in two fragments
	f.Fuzz(func(t *testing.T, input []byte) {
		c, err := net.Dial("tcp", r.httpAddr)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		var reading sync.WaitGroup
		reading.Go(func() {
			_, err := io.Copy(io.Discard, c)
			var late net.Error
			require.False(t, errors.As(err, &late) && late.Timeout(), "it ends: %v", err)
		})
		_, _ = c.Write(append([]byte(handshake), input...)) // the server may close the connection at any byte
		_ = c.(*net.TCPConn).CloseWrite()
		reading.Wait()
		eventually(t, func() bool { return r.pipelines.admission.InFlight() == 0 && r.Snapshot().Streams == 0 }, "nothing is left behind")
	})
}
