// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/tally"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

// proxy is between the exporter and a server, and behaves like a bad network.
type proxy struct {
	addr     string
	target   string
	listener net.Listener
	// delay is the latency in each direction.
	delay time.Duration
	// rate limits the bytes per second of all clients together; 0 means unlimited.
	rate int
	// cutAfter returns the number of bytes from the client after which a connection is cut; 0 means never.
	cutAfter func() int64
	// pick returns the server of the next connection, instead of target.
	pick func() string
	// hole swallows everything while it is set, without closing connections.
	hole atomic.Bool
	// stall blocks everything, in both directions, while it is locked.
	stall sync.RWMutex

	mu      sync.Mutex
	free    time.Time // when a slow network has sent everything so far
	conns   map[net.Conn]struct{}
	cuts    int
	running sync.WaitGroup
}

func newProxy(tb testing.TB, target string, change ...func(*proxy)) *proxy {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(tb, err)
	p := &proxy{addr: listener.Addr().String(), target: target, listener: listener, conns: map[net.Conn]struct{}{}}
	for _, f := range change {
		f(p)
	}
	p.running.Go(p.accept)
	tb.Cleanup(func() {
		listener.Close()
		p.cut()
		p.running.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		target := p.target
		if p.pick != nil {
			target = p.pick()
		}
		server, err := net.Dial("tcp", target)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		limit := int64(0)
		if p.cutAfter != nil {
			limit = p.cutAfter()
		}
		hangUp := sync.OnceFunc(func() {
			client.Close()
			server.Close()
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.conns, client)
			delete(p.conns, server)
		})
		p.running.Go(func() { p.carry(server, client, p.rate, limit, hangUp) })
		p.running.Go(func() { p.carry(client, server, 0, 0, hangUp) })
	}
}

type chunk struct {
	due  time.Time
	data []byte
}

// due returns when the given number of bytes has been sent. A slow network has one queue for all connections.
func (p *proxy) due(n, rate int) time.Time {
	now := time.Now()
	if rate == 0 {
		return now.Add(p.delay)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(n) * time.Second / time.Duration(rate))
	return p.free.Add(p.delay)
}

// carry copies bytes in one direction. It continues to read during the delay, so a delay does not reduce the
// throughput.
func (p *proxy) carry(dst io.Writer, src io.Reader, rate int, limit int64, hangUp func()) {
	defer hangUp()
	chunks := make(chan chunk, 4096)
	p.running.Go(func() {
		defer hangUp()
		broken := false
		for c := range chunks {
			time.Sleep(time.Until(c.due))
			if !broken {
				broken = p.pass(dst, c.data) != nil
			}
		}
	})
	defer close(chunks)
	for total := int64(0); ; {
		buf := make([]byte, 32<<10)
		n, err := src.Read(buf)
		if limit > 0 && total+int64(n) >= limit {
			n, err = int(limit-total), io.EOF
			p.mu.Lock()
			p.cuts++
			p.mu.Unlock()
		}
		total += int64(n)
		chunks <- chunk{p.due(n, rate), buf[:n]}
		if err != nil {
			return
		}
	}
}

// pass writes bytes to their destination.
func (p *proxy) pass(dst io.Writer, data []byte) error {
	p.stall.RLock()
	defer p.stall.RUnlock()
	if p.hole.Load() {
		return nil
	}
	_, err := dst.Write(data)
	return err
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func TestCutAtRandomBytesLosesNothing(t *testing.T) {
	t.Parallel()
	bothTransports(t, func(t *testing.T, kind string) {
		const n, window = 2000, 32
		s := run(t, &testServer{stream: echo}, kind)
		var rounds atomic.Int64
		p := newProxy(t, s.addr, func(p *proxy) {
			p.cutAfter = func() int64 {
				if rounds.Add(1) > 100 {
					return 0
				}
				return 1 + rand.Int64N(8000)
			}
		})
		e := newTestExporter(t, kind, p.addr, func(cfg *Config) {
			cfg.Mode = server.Stream // an interrupted handshake must not look like an old server
			cfg.InFlight.Requests = window
			cfg.Streams = 2
		})
		e.export(0, n)
		require.Equal(t, int64(n), e.settled().Acked)
		require.Len(t, s.names(), n, "each arrived at least once")
		require.Greater(t, p.cuts, 5)
		require.LessOrEqual(t, len(s.seen())-n, window*p.cuts, "duplicates are bounded by what was in flight")
	})
}

func TestServerRestartsLoseNothing(t *testing.T) {
	t.Parallel()
	bothTransports(t, func(t *testing.T, kind string) {
		const n = 2000
		s := run(t, &testServer{stream: echo}, kind)
		e := newTestExporter(t, kind, s.addr)
		done := make(chan struct{})
		go func() {
			defer close(done)
			e.export(0, n)
		}()
		for range 5 {
			before := e.balanced().Acked
			eventually(t, func() bool {
				select {
				case <-done:
					return true
				default:
					return e.balanced().Acked > before+50
				}
			}, "it moves on")
			s.stop()
			s.start(t, kind)
		}
		<-done
		require.Equal(t, int64(n), e.settled().Acked)
		require.Len(t, s.names(), n)
	})
}

func TestABlackHoleIsFoundOutAndNothingIsLost(t *testing.T) {
	t.Parallel()
	bothTransports(t, func(t *testing.T, kind string) {
		t.Parallel() // gRPC takes at least ten seconds
		s := run(t, &testServer{stream: echo}, kind)
		p := newProxy(t, s.addr)
		e := newTestExporter(t, kind, p.addr, func(cfg *Config) {
			keepalive := cfg.Client.Keepalive.Get()
			keepalive.Time, keepalive.Timeout = 10*time.Second, 100*time.Millisecond
			if kind == transport.WebSocket {
				keepalive.Time = 100 * time.Millisecond
			}
		})
		e.export(0, 10)
		require.Equal(t, int64(10), e.settled().Acked)
		p.hole.Store(true)
		cut := e.dest.tally.Closed[tally.Broken].Load()
		e.export(10, 10)
		eventually(t, func() bool { return e.dest.tally.Closed[tally.Broken].Load() > cut }, "the connection is given up")
		p.hole.Store(false)
		require.Equal(t, int64(20), e.settled().Acked)
		require.Len(t, s.names(), 20)
	})
}

func TestAStreamThatIsStuckIsReplaced(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		// The first stream is never read, so sending on it blocks once all buffers are full.
		release := make(chan struct{})
		s := run(t, &testServer{stream: func(p *peer) error {
			if p.number == 0 {
				<-release
				return nil
			}
			return echo(p)
		}}, kind)
		defer close(release)
		e := newTestExporter(t, kind, s.addr, func(cfg *Config) {
			cfg.AckTimeout = 500 * time.Millisecond
			cfg.Client.Compression = "none"
		})
		const n = 20
		for range n {
			require.NoError(t, e.ConsumeTraces(t.Context(), spans(strings.Repeat("x", 1<<20), 1)))
		}
		b := e.settled()
		require.Equal(t, int64(n), b.Acked)
		eventually(t, func() bool {
			e.export(0, 1)
			return e.settled().Acked > b.Acked
		}, "the next stream works")
	})
}

func TestAStallIsNotALoss(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: echo}, kind)
		p := newProxy(t, s.addr)
		e := newTestExporter(t, kind, p.addr)
		e.export(0, 1)
		e.settled()
		stalled := sync.OnceFunc(p.stall.Unlock)
		p.stall.Lock()
		t.Cleanup(stalled)
		e.export(1, 100)
		eventually(t, func() bool { return e.balanced().Pending == 100 }, "all of it is on its way")
		require.Len(t, s.seen(), 1)
		stalled()
		require.Equal(t, int64(101), e.settled().Acked)
		require.Len(t, s.seen(), 101)
	})
}
