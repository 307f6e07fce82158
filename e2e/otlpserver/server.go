// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpserver is an OTLP receiver, over gRPC and HTTP, that records its requests and fails as a test wants. It
// decodes with pdata's own services.
package otlpserver

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/godwit-otel/godwit/e2e/script"
	"github.com/godwit-otel/godwit/e2e/serve"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// Options are the settings of a server. The zero value is a server on free ports.
type Options struct {
	// GRPCAddr and HTTPAddr are the addresses to listen on, by default with free ports. A server with fixed ones can be
	// restarted.
	GRPCAddr, HTTPAddr string
	// CountOnly records totals but no data, for loads that would not fit into memory.
	CountOnly bool
}

// Server is a running receiver of all three signals.
type Server struct {
	// Script says how to respond to requests, over both transports.
	script.Script[Step]

	opts       Options
	grpc, http *serve.Listener

	mu       sync.Mutex
	metrics  []pmetric.Metrics
	traces   []ptrace.Traces
	logs     []plog.Logs
	requests []Request
	totals   Totals
}

// Request is the record of one request.
type Request struct {
	At     time.Time
	Signal Signal
	// Header holds gRPC metadata in the form of HTTP headers.
	Header http.Header
	// Items are data points, spans or log records.
	Items int
	// Kept reports whether the data were kept.
	Kept bool
}

// Signal is the kind of data in a request.
type Signal string

// The signals.
const (
	Metrics Signal = "metrics"
	Traces  Signal = "traces"
	Logs    Signal = "logs"
)

// Totals are sums over the requests whose data were kept.
type Totals struct {
	Requests, DataPoints, Spans, LogRecords int
}

// The number of records is limited, for senders out of control.
const maxRequests = 100_000

// New starts a server that ends with the test.
func New(t testing.TB, opts Options) *Server {
	t.Helper()
	listen := func(addr string) *serve.Listener {
		if addr == "" {
			addr = "127.0.0.1:0"
		}
		return serve.Listen(t, addr)
	}
	s := &Server{opts: opts, grpc: listen(opts.GRPCAddr), http: listen(opts.HTTPAddr)}
	serveGRPC(t, s)
	serve.HTTP(t, s.http, s.handler())
	return s
}

// GRPCAddr returns host:port of the gRPC service.
func (s *Server) GRPCAddr() string { return s.grpc.Addr().String() }

// HTTPURL returns the URL to which clients append /v1/metrics and so on.
func (s *Server) HTTPURL() string { return "http://" + s.http.Addr().String() }

// ResetAll cuts every open connection, as a crash would.
func (s *Server) ResetAll() {
	s.grpc.ResetAll()
	s.http.ResetAll()
}

// WireBytes returns the number of bytes received on all connections, with framing.
func (s *Server) WireBytes() int64 { return s.grpc.Received() + s.http.Received() }

// Metrics returns the data that were kept, in order of arrival.
func (s *Server) Metrics() []pmetric.Metrics {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.metrics)
}

// Traces returns the data that were kept, in order of arrival.
func (s *Server) Traces() []ptrace.Traces {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.traces)
}

// Logs returns the data that were kept, in order of arrival.
func (s *Server) Logs() []plog.Logs {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.logs)
}

// Requests returns the first 100000 requests in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Totals returns the totals of the data that were kept.
func (s *Server) Totals() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals
}

// export is a decoded request of any signal.
type export struct {
	signal Signal
	items  int
	// keep stores the data; the caller holds the server's mutex.
	keep func(*Server)
}

func exportMetrics(md pmetric.Metrics) export {
	return export{Metrics, md.DataPointCount(), func(s *Server) {
		s.totals.DataPoints += md.DataPointCount()
		if !s.opts.CountOnly {
			s.metrics = append(s.metrics, md)
		}
	}}
}

func exportTraces(td ptrace.Traces) export {
	return export{Traces, td.SpanCount(), func(s *Server) {
		s.totals.Spans += td.SpanCount()
		if !s.opts.CountOnly {
			s.traces = append(s.traces, td)
		}
	}}
}

func exportLogs(ld plog.Logs) export {
	return export{Logs, ld.LogRecordCount(), func(s *Server) {
		s.totals.LogRecords += ld.LogRecordCount()
		if !s.opts.CountOnly {
			s.logs = append(s.logs, ld)
		}
	}}
}

// take records a request and waits for its step's delay. It reports false if the request has ended meanwhile.
func (s *Server) take(ctx context.Context, header http.Header, e export) (Step, bool) {
	step := s.Next()
	s.mu.Lock()
	if len(s.requests) < maxRequests {
		s.requests = append(s.requests, Request{time.Now(), e.signal, header, e.items, step.keeps()})
	}
	if step.keeps() {
		s.totals.Requests++
		e.keep(s)
	}
	s.mu.Unlock()
	return step, wait.Pause(ctx, step.Delay)
}
