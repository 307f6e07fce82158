// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/server"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
)

// pagesOfProxies are refusals of proxies: of a client certificate that has expired, of an address, of a route.
var pagesOfProxies = []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusInternalServerError}

// writePage answers as nginx does.
func writePage(w http.ResponseWriter, code int) {
	title := strconv.Itoa(code) + " Something&#39;s wrong"
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, "<html>\r\n<head><title>"+title+"</title></head>\r\n<body>\r\n<center><h1>"+title+"</h1></center>\r\n</body>\r\n</html>\r\n")
}

// startProxy starts a proxy that refuses the first requests with a page for each of pagesOfProxies, and then has a
// server of OTLP behind it.
func startProxy(t *testing.T, kind string) (addr string, calls *atomic.Int64) {
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	calls = new(atomic.Int64)
	h := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if n := calls.Add(1); n <= int64(len(pagesOfProxies)) {
			writePage(w, pagesOfProxies[n-1])
			return
		}
		if kind == transport.GRPC {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = w.Write(make([]byte, 5)) // an empty message
			w.Header().Set("Grpc-Status", "0")
		}
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Serve(listener) }()
	t.Cleanup(func() { h.Close(); <-done })
	return listener.Addr().String(), calls
}

// What a proxy refuses is not about the request: it is sent again until the proxy, or a certificate, is corrected.
func TestWhatAProxyRefusesWithAPageIsSentAgain(t *testing.T) {
	allTransports(t, func(t *testing.T, kind string) {
		addr, calls := startProxy(t, kind)
		core, logs := observer.New(zap.InfoLevel)
		set := exportertest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		e := startExporter(t, set, componenttest.NewNopHost(), testConfig(kind, addr, func(cfg *Config) {
			cfg.Mode, cfg.Client.Compression = server.Unary, "none"
		}))
		e.export(0, 1)
		require.Equal(t, int64(1), e.settled().Acked)
		require.Equal(t, int64(len(pagesOfProxies)+1), calls.Load())
		require.NoError(t, e.Shutdown(t.Context()))
		lines := logs.FilterMessageSnippet("The destination")
		require.Equal(t, 2, lines.Len(), "one when it refuses, one when it accepts: %v", lines.All())
		said := lines.All()[0].ContextMap()["error"]
		require.Contains(t, said, "400")
		if kind != transport.GRPC { // whose library keeps no pages
			require.Contains(t, said, "400 Bad Request: 400 Something's wrong")
		}
	})
}

// A client's credentials may be wrong for ever, also for a proxy.
func TestClientsThatAProxyRefusesKeepNobodyWaiting(t *testing.T) {
	allTransports(t, func(t *testing.T, kind string) {
		addr, calls := startProxy(t, kind)
		e := newTestExporter(t, kind, addr, noQueue, func(cfg *Config) {
			cfg.Mode, cfg.Client.Compression = server.Unary, "none"
		})
		ctx := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{"token": {"old"}})})
		require.True(t, consumererror.IsPermanent(e.ConsumeTraces(ctx, spans("client's", 1))))
		require.Equal(t, int64(2), calls.Load(), "400 is about no credentials, 403 may be")
	})
}

// The reason that a server gives is in the error.
func TestRefusalsSayWhatTheServerSays(t *testing.T) {
	for _, c := range []struct{ contentType, body, want string }{
		{"text/plain; charset=utf-8", "no such\n tenant\n", "400 Bad Request: no such tenant"},
		{"application/x-protobuf", "\x08\x03\x12\x0eno such tenant", "400 Bad Request: no such tenant"},
		{"application/x-protobuf", "\xff", "400 Bad Request"},
		{"application/octet-stream", "\x00\x01", "400 Bad Request"},
		{"", "", "400 Bad Request"},
	} {
		s := startPlain(t, func(_ int64, w http.ResponseWriter) {
			w.Header().Set("Content-Type", c.contentType)
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, c.body)
		})
		e := newTestExporter(t, transport.HTTP, s.URL, noQueue)
		require.ErrorContains(t, e.ConsumeTraces(t.Context(), spans("bad", 1)), "desc = "+c.want)
	}
}

// A proxy without a rule for the address says nothing about a compression that was accepted before.
func TestAPageChangesNoCompressionThatWasAccepted(t *testing.T) {
	s := startPlain(t, func(n int64, w http.ResponseWriter) {
		if n == 2 {
			writePage(w, http.StatusNotFound)
		}
	})
	e := newTestExporter(t, transport.HTTP, s.URL)
	e.export(0, 1)
	require.Equal(t, int64(1), e.settled().Acked)
	e.export(1, 1)
	require.Equal(t, int64(2), e.settled().Acked)
	r, _ := s.last()
	require.Equal(t, "zstd", r.Header.Get("Content-Encoding"))
	require.Equal(t, int64(3), s.calls.Load())
}

// A proxy that refuses a request in one compression, and accepts it in another, may have been corrected in between. Only
// if it does so again, it is about the compression.
func TestAPageThatEndsChangesNoCompression(t *testing.T) {
	for _, lasts := range []bool{false, true} {
		var s *plainServer
		s = startPlain(t, func(n int64, w http.ResponseWriter) {
			if r, _ := s.last(); n == 1 || lasts && r.Header.Get("Content-Encoding") == "zstd" {
				writePage(w, http.StatusBadRequest)
			}
		})
		e := newTestExporter(t, transport.HTTP, s.URL, func(cfg *Config) { cfg.InFlight.Requests = 1 })
		for n := range 3 {
			e.export(n, 1)
			require.Equal(t, int64(n+1), e.settled().Acked)
		}
		s.mu.Lock()
		var asked []string
		for _, r := range s.requests {
			asked = append(asked, r.Header.Get("Content-Encoding"))
		}
		s.mu.Unlock()
		if lasts {
			require.Equal(t, []string{"zstd", "gzip", "zstd", "gzip", "gzip"}, asked)
		} else {
			require.Equal(t, []string{"zstd", "gzip", "zstd", "zstd"}, asked)
		}
	}
}
