// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

// forward is an HTTP proxy that forwards all connections to one server.
type forward struct {
	*httptest.Server

	mu        sync.Mutex
	asked     []string
	refuses   bool
	ended     bool // no further tunnels
	tunnels   sync.WaitGroup
	passwords []string
}

func newForward(t *testing.T, server string) *forward {
	f := &forward{}
	passed := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: server}) }}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.asked = append(f.asked, r.Method+" "+r.RequestURI)
		f.passwords = append(f.passwords, r.Header.Get("Proxy-Authorization"))
		refuses := f.refuses
		f.mu.Unlock()
		switch {
		case refuses:
			http.Error(w, "no", http.StatusProxyAuthRequired)
		case r.Method == http.MethodConnect:
			f.lead(t, w, server)
		case r.Header.Get("Upgrade") != "":
			http.Error(w, "it is no proxy for WebSockets", http.StatusBadRequest)
		default:
			passed.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		f.Close() // does not wait for hijacked connections
		f.mu.Lock()
		f.ended = true
		f.mu.Unlock()
		f.tunnels.Wait()
	})
	return f
}

func (f *forward) lead(t *testing.T, w http.ResponseWriter, server string) {
	to, err := net.Dial("tcp", server)
	if err != nil {
		t.Error(err)
		return
	}
	w.WriteHeader(http.StatusOK)
	from, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	hangUp := sync.OnceFunc(func() { from.Close(); to.Close() })
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		hangUp()
		return
	}
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		f.tunnels.Go(func() {
			defer hangUp()
			_, _ = io.Copy(way[0], way[1])
		})
	}
}

func (f *forward) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}

const far = "http://gateway.example:4318" // known only to the proxy

func TestAStreamGoesThroughAProxyAsATunnel(t *testing.T) {
	s := run(t, &testServer{stream: echo}, transport.WebSocket)
	f := newForward(t, s.addr)
	u, err := url.Parse(f.URL)
	require.NoError(t, err)
	u.User = url.UserPassword("goose", "honk")
	t.Setenv("HTTP_PROXY", u.String())
	e := newTestExporter(t, transport.WebSocket, far)
	e.export(0, 20)
	require.Equal(t, int64(20), e.settled().Acked)
	// On a slow machine a stream may be opened more than once.
	require.Equal(t, []string{"CONNECT gateway.example:4318"}, slices.Compact(f.seen()))
	require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("goose:honk")), f.passwords[0])
}

func TestAUnaryRequestIsPassedOnByAProxy(t *testing.T) {
	s := run(t, &testServer{}, transport.WebSocket)
	f := newForward(t, s.addr)
	t.Setenv("HTTP_PROXY", f.URL)
	e := newTestExporter(t, transport.WebSocket, far, func(cfg *Config) { cfg.Mode = server.Unary })
	e.export(0, 1)
	require.Equal(t, int64(1), e.settled().Acked)
	require.Equal(t, []string{"POST " + far + "/v1/traces"}, f.seen())
}

func TestAProxyThatRefusesLosesNothing(t *testing.T) {
	s := run(t, &testServer{stream: echo}, transport.WebSocket)
	f := newForward(t, s.addr)
	f.refuses = true
	t.Setenv("HTTP_PROXY", f.URL)
	e := newTestExporter(t, transport.WebSocket, far)
	e.export(0, 1)
	eventually(t, func() bool { return len(f.seen()) > 2 }, "it is asked again")
	require.False(t, e.dest.snapshot().Healthy)
	f.mu.Lock()
	f.refuses = false
	f.mu.Unlock()
	require.Equal(t, int64(1), e.settled().Acked)
}
