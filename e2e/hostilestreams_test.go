// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/e2e/wait"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// h2 is an HTTP/2 client that sends any frames.
type h2 struct {
	conn    net.Conn
	framer  *http2.Framer
	headers bytes.Buffer
	encoder *hpack.Encoder
	next    uint32
}

// openH2 opens a connection with its preface. Unless deaf, it reads and discards the responses.
func openH2(ctx context.Context, addr string, deaf bool) *h2 {
	conn := connect(ctx, addr)
	if conn == nil {
		return nil
	}
	c := &h2{conn: conn, framer: http2.NewFramer(conn, conn), next: 1}
	c.encoder = hpack.NewEncoder(&c.headers)
	_, _ = io.WriteString(conn, http2.ClientPreface)
	settings := []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 1 << 20}}
	if deaf {
		settings[0].Val = 0
	}
	_ = c.framer.WriteSettings(settings...)
	if !deaf {
		go func() { _, _ = io.Copy(io.Discard, conn) }() // it ends with the connection
	}
	return c
}

// open opens a stream for a gRPC method and returns its ID.
func (c *h2) open(method, encoding string, extra ...string) uint32 {
	c.headers.Reset()
	pairs := append([]string{
		":method", "POST", ":scheme", "http", ":path", method, ":authority", "gateway", "content-type", "application/grpc", "te", "trailers",
	}, extra...)
	if encoding != "" {
		pairs = append(pairs, "grpc-encoding", encoding)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}) // writes to a buffer
	}
	id := c.next
	c.next += 2
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.headers.Bytes(), EndHeaders: true})
	return id
}

// message sends a gRPC message in frames.
func (c *h2) message(id uint32, compressed byte, length uint32, body []byte) error {
	all := append(binary.BigEndian.AppendUint32([]byte{compressed}, length), body...)
	for len(all) > 0 {
		n := min(len(all), 16<<10)
		if err := c.framer.WriteData(id, false, all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

var (
	unary  = otlpstream.Metrics.OTLPMethod()
	stream = otlpstream.Metrics.StreamMethod()
)

// grpcPeers are malicious gRPC clients.
var grpcPeers = []struct {
	name string
	deaf bool
	do   func(ctx context.Context, c *h2)
}{
	{"garbage frames", false, func(_ context.Context, c *h2) { _, _ = c.conn.Write(noise(1 << 20)) }},
	{"rapid resets", false, func(_ context.Context, c *h2) {
		for range 500 {
			id := c.open(unary, "")
			_ = c.framer.WriteRSTStream(id, http2.ErrCodeCancel)
		}
	}},
	{"pings", false, func(_ context.Context, c *h2) {
		for range 500 {
			_ = c.framer.WritePing(false, [8]byte{})
		}
	}},
	{"settings", true, func(_ context.Context, c *h2) {
		for range 500 {
			_ = c.framer.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 1})
		}
	}},
	{"headers without end", false, func(_ context.Context, c *h2) {
		_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x40, 1, 'x', 1, 'y'}})
		for range 2000 {
			if c.framer.WriteContinuation(1, false, bytes.Repeat([]byte{0x40, 1, 'x', 1, 'y'}, 1000)) != nil {
				return
			}
		}
	}},
	{"a table bomb", false, func(_ context.Context, c *h2) {
		block := append([]byte{0x40, 1, 'x', 0x7f, 0xe1, 0x1e}, bytes.Repeat([]byte("v"), 4000)...)
		_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: append(block, bytes.Repeat([]byte{0xbe}, 12_000)...), EndHeaders: true})
	}},
	{"a message of 4 GiB", false, func(_ context.Context, c *h2) {
		_ = c.message(c.open(unary, ""), 0, math.MaxUint32, noise(1000))
		_ = c.message(c.open(stream, ""), 0, math.MaxUint32, noise(1000))
	}},
	{"large messages that stop", false, func(ctx context.Context, c *h2) {
		for range hostileCrowd {
			_ = c.message(c.open(stream, ""), 0, 15<<20, make([]byte, 256))
		}
		wait.Pause(ctx, time.Second)
	}},
	{"a gzip bomb", false, func(_ context.Context, c *h2) {
		body := gzipBomb()
		_ = c.message(c.open(unary, "gzip"), 1, uint32(len(body)), body)
		_ = c.message(c.open(stream, "gzip"), 1, uint32(len(body)), body)
	}},
	{"idle streams", false, func(ctx context.Context, c *h2) {
		for range hostileCrowd {
			c.open(stream, "")
		}
		wait.Pause(ctx, time.Second)
	}},
	{"answers not read", true, func(ctx context.Context, c *h2) {
		id := c.open(stream, "")
		body := cat(varint(1, 1), field(2, metrics(kind("m", gaugeKind, field(1, cat(fixed(3, someTime), fixed(4, 0)))))))
		for ctx.Err() == nil {
			if c.message(id, 0, uint32(len(body)), body) != nil {
				return
			}
			wait.Pause(ctx, blowPause/25)
		}
	}},
	{"garbage on a stream", false, func(_ context.Context, c *h2) {
		for _, body := range [][]byte{noise(10_000), {}, varint(1, math.MaxUint64), field(2, noise(5000)), nothings(2, 100_000), cat(varint(1, 1), field(2, noise(100)))} {
			_ = c.message(c.open(stream, ""), 0, uint32(len(body)), body)
		}
	}},
	{"garbage in extensions", false, func(_ context.Context, c *h2) {
		id := c.open(stream, "", otlpstream.HeaderCaps, otlpstream.AllCaps.String(), otlpstream.HeaderWindowBytes, "99999999999999999999", otlpstream.HeaderMaxMessage, "-1")
		for n := protowire.Number(16); n < 32; n++ {
			for _, body := range [][]byte{cat(varint(1, uint64(n)), varint(n, math.MaxUint64), field(2, noise(3000))), cat(varint(1, uint64(n)), field(n, noise(3000)), field(2, noise(3000)))} {
				if c.message(id, 0, uint32(len(body)), body) != nil {
					return
				}
			}
		}
	}},
	{"the same number again", false, func(_ context.Context, c *h2) {
		id := c.open(stream, "")
		body := cat(varint(1, 7), field(2, metrics(kind("m", gaugeKind, field(1, cat(fixed(3, someTime), fixed(4, 0)))))))
		for range 300 {
			if c.message(id, 0, uint32(len(body)), body) != nil {
				return
			}
		}
	}},
	{"windows that overflow", false, func(_ context.Context, c *h2) {
		c.open(stream, "")
		_ = c.framer.WriteWindowUpdate(0, math.MaxInt32)
		_ = c.framer.WriteWindowUpdate(1, math.MaxInt32)
		_ = c.framer.WriteWindowUpdate(1, math.MaxInt32)
	}},
}

var gzipBomb = sync.OnceValue(func() []byte { return pack("gzip", make([]byte, 1<<20), 512) })

// Malicious gRPC clients, unary or streaming, do not affect other clients.
func TestHostileStreams(t *testing.T) {
	t.Parallel()
	for i, peer := range grpcPeers {
		attacked(t, i, peer.name, func(ctx context.Context, in inputs) {
			again(ctx, func() {
				if c := openH2(ctx, in.grpc, peer.deaf); c != nil {
					defer c.conn.Close()
					peer.do(ctx, c)
					wait.Pause(ctx, blowPause)
				}
			})
		})
	}
	for i, b := range otlpBodies {
		attacked(t, i, b.name, func(ctx context.Context, in inputs) {
			body := b.body()
			again(ctx, func() {
				c := openH2(ctx, in.grpc, false)
				if c == nil {
					return
				}
				defer c.conn.Close()
				if b.name == "new series without end" {
					body = b.body()
				}
				onStream := cat(varint(1, 1), field(2, body))
				_ = c.message(c.open(unary, ""), 0, uint32(len(body)), body)
				_ = c.message(c.open(stream, ""), 0, uint32(len(onStream)), onStream)
				wait.Pause(ctx, 4*blowPause)
			})
		})
	}
}

// upgrade opens a WebSocket.
func upgrade(ctx context.Context, addr string) net.Conn {
	conn := connect(ctx, addr)
	if conn == nil {
		return nil
	}
	_, _ = io.WriteString(conn, "GET "+otlpstream.Metrics.WebSocketPath()+" HTTP/1.1\r\nHost: "+addr+
		"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	answer := make([]byte, 4096)
	_, _ = conn.Read(answer)
	return conn
}

// frame returns a WebSocket frame with a mask of zeros.
func frame(head byte, length uint64, body []byte) []byte {
	return append(append(binary.BigEndian.AppendUint64([]byte{head, 0x80 | 127}, length), 0, 0, 0, 0), body...)
}

const (
	final, continued                       = 0x80, 0x00
	opText, opBinary, opClose, opPing      = 1, 2, 8, 9
	opContinue                             = 0
	reservedBits                      byte = 0x70
)

// socketPeers are malicious WebSocket clients.
var socketPeers = []struct {
	name string
	do   func(ctx context.Context, conn net.Conn)
}{
	{"garbage frames", func(_ context.Context, conn net.Conn) { _, _ = conn.Write(noise(1 << 20)) }},
	{"no masks", func(_ context.Context, conn net.Conn) { _, _ = conn.Write([]byte{final | opBinary, 3, 1, 2, 3}) }},
	{"reserved bits", func(_ context.Context, conn net.Conn) {
		_, _ = conn.Write(frame(final|reservedBits|opBinary, 3, []byte("abc")))
	}},
	{"a frame of 2^63", func(_ context.Context, conn net.Conn) {
		_, _ = conn.Write(frame(final|opBinary, math.MaxUint64, noise(1000)))
		_, _ = conn.Write(frame(final|opBinary, math.MaxInt64, noise(1000)))
	}},
	{"fragments without end", func(ctx context.Context, conn net.Conn) {
		_, _ = conn.Write(frame(continued|opBinary, 1, []byte("a")))
		empty := bytes.Repeat(frame(continued|opContinue, 0, nil), 1000)
		for ctx.Err() == nil {
			if _, err := conn.Write(empty); err != nil {
				return
			}
			wait.Pause(ctx, blowPause/5)
		}
	}},
	{"large frames that stop", func(ctx context.Context, conn net.Conn) {
		_, _ = conn.Write(frame(final|opBinary, 15<<20, make([]byte, 100)))
		wait.Pause(ctx, time.Second)
	}},
	{"pings", func(_ context.Context, conn net.Conn) {
		_, _ = conn.Write(bytes.Repeat(frame(final|opPing, 100, make([]byte, 100)), 1000))
	}},
	{"text", func(_ context.Context, conn net.Conn) {
		_, _ = conn.Write(frame(final|opText, 4, []byte("\xff\xfe\xfd{")))
	}},
	{"half a close", func(ctx context.Context, conn net.Conn) {
		_, _ = conn.Write(frame(final|opClose, 1, []byte("x")))
		wait.Pause(ctx, 10*blowPause)
	}},
	{"garbage messages", func(_ context.Context, conn net.Conn) {
		for _, body := range [][]byte{noise(10_000), {}, varint(1, math.MaxUint64), field(2, noise(5000)), nothings(2, 100_000)} {
			_, _ = conn.Write(frame(final|opBinary, uint64(len(body)), body))
		}
	}},
	{"answers not read", func(ctx context.Context, conn net.Conn) {
		body := cat(varint(1, 1), field(2, metrics(kind("m", gaugeKind, field(1, cat(fixed(3, someTime), fixed(4, 0)))))))
		flood := bytes.Repeat(frame(final|opBinary, uint64(len(body)), body), 20)
		for ctx.Err() == nil {
			if _, err := conn.Write(flood); err != nil {
				return
			}
			wait.Pause(ctx, blowPause)
		}
	}},
}

// Malicious WebSocket clients do not affect other clients.
func TestHostileWebSockets(t *testing.T) {
	t.Parallel()
	for i, peer := range socketPeers {
		attacked(t, i, peer.name, func(ctx context.Context, in inputs) {
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					again(ctx, func() {
						if conn := upgrade(ctx, in.http); conn != nil {
							defer conn.Close()
							peer.do(ctx, conn)
							wait.Pause(ctx, blowPause)
						}
					})
				})
			}
			all.Wait()
		})
	}
}
