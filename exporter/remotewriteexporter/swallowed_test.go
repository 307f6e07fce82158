// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
)

// a road forwards connections to a server. Those that are cut swallow what comes, as when an address moves to another
// machine: neither side is told.
type road struct {
	net.Listener

	mu   sync.Mutex
	cuts []func()
}

func newRoad(t *testing.T, to net.Addr) *road {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &road{Listener: l}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to.String())
			if err != nil {
				_ = near.Close()
				continue
			}
			t.Cleanup(func() { _, _ = near.Close(), far.Close() })
			cut := make(chan struct{})
			r.mu.Lock()
			r.cuts = append(r.cuts, sync.OnceFunc(func() { close(cut) }))
			r.mu.Unlock()
			pass := func(to, from net.Conn) {
				b := make([]byte, 64<<10)
				for {
					n, err := from.Read(b)
					select {
					case <-cut:
						if err != nil {
							return
						}
						continue
					default:
					}
					if _, failed := to.Write(b[:n]); err != nil || failed != nil {
						_, _ = to.Close(), from.Close()
						return
					}
				}
			}
			all.Go(func() { pass(near, far) })
			all.Go(func() { pass(far, near) })
		}
	})
	return r
}

func (r *road) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.cuts {
		f()
	}
}

// TestAConnectionThatSwallowsRequestsIsLeft: with HTTP/1.1 each timeout ends its connection; with HTTP/2 that would
// remain, for hundreds of requests.
func TestAConnectionThatSwallowsRequestsIsLeft(t *testing.T) {
	for name, second := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			d := &received{t: t, series: map[string][]point{}}
			d.Server = httptest.NewUnstartedServer(http.HandlerFunc(d.serve))
			d.EnableHTTP2 = true
			d.StartTLS()
			t.Cleanup(d.Close)
			r := newRoad(t, d.Listener.Addr())
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				c.Endpoint, c.Timeout = "https://"+r.Addr().String(), 500*time.Millisecond
				c.HTTP.TLS.InsecureSkipVerify, c.HTTP.ForceAttemptHTTP2 = true, second
			})
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 0)))
			eventually(t, func() bool { return e.Snapshot().Destinations[0].Outcome.Samples == 10 }, "the samples are delivered")
			r.cut()
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(10, 1)))
			eventually(t, func() bool { return d.samples() == 20 }, "the samples arrive by another connection")
			d.requireOrdered(t)
		})
	}
}
