// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
)

const page200 = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nup 1\n"

func TestKeepsTheConnection(t *testing.T) {
	var conns atomic.Int32
	server := serveRaw(t, func(conn net.Conn, _ int) {
		conns.Add(1)
		requests(conn, func(*http.Request) bool {
			_, err := io.WriteString(conn, page200)
			return err == nil
		})
	})
	bothRoads(t, server, func(t *testing.T, target *Target) {
		before := conns.Load()
		for range 3 {
			page, err := get(target)
			require.NoError(t, err)
			require.Equal(t, "up 1\n", page)
		}
		require.Equal(t, before+1, conns.Load())
		require.Equal(t, server, target.URL())
		require.Equal(t, Identity, target.Encoding())
		require.Equal(t, len("up 1\n"), target.Size())
	})
}

// A connection that was idle for long may be dead without any notice.
func TestMistrustsOldConnections(t *testing.T) {
	conns := make(chan struct{}, 10)
	server := serveRaw(t, func(conn net.Conn, _ int) {
		conns <- struct{}{}
		requests(conn, func(*http.Request) bool {
			_, err := io.WriteString(conn, page200)
			return err == nil
		})
	})
	target := newTarget(t, Plain, server, patient)
	for range 2 {
		_, err := get(target)
		require.NoError(t, err)
		target.used = target.used.Add(-maxIdle)
	}
	require.Len(t, conns, 2)
}

func TestTimesOutWhileItConnects(t *testing.T) {
	server := serveFast(t, []byte(page200))
	for _, road := range []Road{Plain, NetHTTP} {
		_, err := get(newTarget(t, road, server, time.Nanosecond))
		require.ErrorContains(t, err, `Get "`+server+`": context deadline exceeded`)
		require.Equal(t, ReasonTimeout, Reason(err))
		ctx, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		_, err = newTarget(t, road, server, patient).Get(ctx, nil, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

// A connection that the peer closed while it was idle is replaced once, without an error.
func TestReplacesStaleConnections(t *testing.T) {
	var conns atomic.Int32
	f := func(leave func(conn net.Conn)) {
		t.Helper()
		gone := make(chan struct{}, 10)
		handle := func(conn net.Conn, _ int) {
			conns.Add(1)
			requests(conn, func(*http.Request) bool {
				io.WriteString(conn, page200)
				leave(conn)
				return false
			})
			conn.Close()
			gone <- struct{}{}
		}
		secured, trust := throughTLS(t, handle)
		for _, target := range []*Target{newTarget(t, Plain, serveRaw(t, handle), patient), newTarget(t, Plain, secured, patient, trust)} {
			conns.Store(0)
			for range 3 {
				page, err := get(target)
				require.NoError(t, err)
				require.Equal(t, "up 1\n", page)
				<-gone
			}
			require.EqualValues(t, 3, conns.Load())
			require.Equal(t, Plain, target.Road())
		}
	}
	f(func(net.Conn) {})
	f(reset)
	f(func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	})
}

// Only an idle connection is replaced silently: a peer that never responds is not asked again.
func TestAsksOnceWhoNeverAnswers(t *testing.T) {
	var asked atomic.Int32
	server := serveRaw(t, func(conn net.Conn, _ int) {
		requests(conn, func(*http.Request) bool {
			asked.Add(1)
			return false
		})
	})
	_, err := get(newTarget(t, Plain, server, patient))
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, ReasonReset, Reason(err))
	require.EqualValues(t, 1, asked.Load())
}

func TestEndsWithItsContext(t *testing.T) {
	asked := make(chan struct{}, 1)
	handle := func(conn net.Conn, _ int) {
		requests(conn, func(*http.Request) bool {
			asked <- struct{}{}
			hold(conn)
			return false
		})
	}
	server := serveRaw(t, handle)
	ends := func(t *testing.T, target *Target) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-asked
			cancel()
		}()
		_, err := target.Get(ctx, nil, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, ReasonCanceled, Reason(err))
		_, err = target.Get(ctx, nil, nil)
		require.ErrorIs(t, err, context.Canceled)
	}
	bothRoads(t, server, ends)
	secured, trust := throughTLS(t, handle)
	for _, road := range []Road{Plain, NetHTTP} {
		t.Run("TLS/"+road.String(), func(t *testing.T) { ends(t, newTarget(t, road, secured, patient, trust)) })
	}
}

func TestIdleTargetsHaveNoGoroutines(t *testing.T) {
	const n = 300
	var served sync.WaitGroup
	server := serveRaw(t, func(conn net.Conn, _ int) {
		requests(conn, func(*http.Request) bool {
			io.WriteString(conn, page200)
			served.Done()
			hold(conn)
			return false
		})
	})
	c := newClient(t, jobConfig(), Options{})
	before := runtime.NumGoroutine()
	served.Add(n)
	var buf []byte
	for range n {
		target := c.NewTarget(server, "", patient, accept)
		defer target.Close()
		r, err := target.Get(t.Context(), buf, nil)
		require.NoError(t, err)
		buf = r.Body
	}
	served.Wait()
	// One goroutine per connection belongs to the server.
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+n+10 }, 30*time.Second, 10*time.Millisecond)
	require.LessOrEqual(t, unsafe.Sizeof(Target{}), uintptr(320))
}

func TestSteadyExchangesHardlyAllocate(t *testing.T) {
	server := serveFast(t, []byte(page200))
	target := newTarget(t, Plain, server, patient)
	buf := make([]byte, 0, 4<<10)
	d := &Decoder{}
	n := alloctest.PerRun(func() {
		r, err := target.Get(t.Context(), buf, nil)
		if err == nil {
			_, err = d.Decode(r, 0, func([]byte) error { return nil })
		}
		if err != nil || &r.Body[0] != &buf[:1][0] {
			t.Error(err)
		}
	})
	require.LessOrEqual(t, n, 2.0) // both are in context.AfterFunc
}

func TestReadsLargeBodies(t *testing.T) {
	page := pageOf(5 << 20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sized" {
			w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		}
		w.Write(page)
	}))
	defer server.Close()
	for _, path := range []string{"/sized", "/chunked"} {
		bothRoads(t, server.URL+path, func(t *testing.T, target *Target) {
			for i := range 2 {
				r, err := target.Get(t.Context(), nil, nil)
				require.NoError(t, err)
				require.True(t, bytes.Equal(page, r.Body))
				if i > 0 {
					require.Less(t, cap(r.Body), len(page)*5/4, "its size is known from the last time")
				}
			}
		})
	}
}

func TestReportsBadConfiguration(t *testing.T) {
	_, err := NewClient(jobConfig(func(c *promconfig.ScrapeConfig) {
		c.HTTPClientConfig.TLSConfig.CAFile = filepath.Join(t.TempDir(), "missing")
	}), Options{})
	require.ErrorContains(t, err, `job "test"`)
	_, err = get(newTarget(t, NetHTTP, "://", patient))
	require.Error(t, err)
	var parse *url.Error
	require.ErrorAs(t, err, &parse)
}
