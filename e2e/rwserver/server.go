// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package rwserver is a receiver of Prometheus remote write, 1.0 and 2.0, that records its requests and fails as a test
// wants.
//
// It decodes with Prometheus' own generated code, so that it can judge our encoders, and records all violations of the
// protocol: see Violations.
package rwserver

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/godwit-otel/godwit/e2e/script"
	"github.com/godwit-otel/godwit/e2e/serve"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// Versions of the protocol and encodings of a body.
const (
	V1     = "1.0"
	V2     = "2.0"
	Snappy = "snappy"
	Zstd   = "zstd"
)

// Options are the settings of a server. The zero value accepts everything.
type Options struct {
	// Addr is the address to listen on, by default with a free port. A server with a fixed one can be restarted.
	Addr string
	// Secure, if not nil, returns the TLS configuration of each new connection; nil means none.
	Secure func() *tls.Config
	// Versions and Encodings are those accepted; others get a 415.
	Versions, Encodings []string
	// CountOnly records totals but no series, for loads that would not fit into memory.
	CountOnly bool
	// Observe is called with each series of data that is kept, in order of arrival and never concurrently. It must not
	// call the server.
	Observe func(Series)
	// Choose may return a step for a request with these headers; otherwise the script decides.
	Choose func(http.Header) (Step, bool)
	// ObserveRequest is called, in the same way, with each request whose data are kept and with its series.
	ObserveRequest func(Request, []Series)
}

// Server is a running receiver.
type Server struct {
	// Script says how to respond to requests.
	script.Script[Step]

	opts     Options
	listener *serve.Listener

	mu         sync.Mutex
	memory     memory
	requests   []Request
	totals     Totals
	violations []string
}

// Request is the record of one request that was read to its end.
type Request struct {
	At     time.Time
	Header http.Header
	// Version is V1 or V2, Encoding Snappy or Zstd; either is empty if it is something else.
	Version, Encoding string
	// WireBytes is the size of the body as received, RawBytes when decompressed.
	WireBytes, RawBytes int
	Samples, Histograms int
	Exemplars           int
	// Status of the response; 0 if there was none.
	Status int
	// Kept reports whether the data were kept.
	Kept bool
	// Err says what was wrong with the request.
	Err error
}

// Totals are sums over the requests whose data were kept.
type Totals struct {
	Requests, Samples, Histograms, Exemplars int
	WireBytes, RawBytes                      int64
}

// The number of records is limited, for senders out of control.
const (
	maxRequests   = 100_000
	maxViolations = 100
)

// New starts a server that ends with the test.
func New(t testing.TB, opts Options) *Server {
	t.Helper()
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	s := &Server{opts: opts, listener: serve.Listen(t, opts.Addr), memory: newMemory()}
	s.listener.Secure = opts.Secure
	serve.HTTP(t, s.listener, http.HandlerFunc(s.answer))
	return s
}

// Addr returns host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL returns the URL for senders.
func (s *Server) URL() string { return "http://" + s.Addr() + "/api/v1/write" }

// Requests returns the first 100000 requests, in the order in which their bodies ended.
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

// Violations returns the first 100 violations of the protocol.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	step := s.step(r.Header)
	if step.Fault == ResetBeforeBody {
		serve.Cut(s.listener, r)
	}
	body, err := readBody(r, step.ReadPause)
	if err != nil { // the sender closed the connection, so its data do not count
		panic(http.ErrAbortHandler)
	}
	msg, err := s.decode(r.Header, body)
	if r.Context().Err() != nil { // nor do they if decoding took longer, on a busy machine, than the sender waits
		panic(http.ErrAbortHandler)
	}
	if step.MaxRaw > 0 && msg.rawBytes > step.MaxRaw {
		step.Status = http.StatusRequestEntityTooLarge
	}
	s.remember(r, body, msg, step, err)
	if !wait.Pause(r.Context(), step.Delay) {
		panic(http.ErrAbortHandler)
	}
	switch step.Fault {
	case Hang:
		serve.Hang(r)
	case ResetAfterBody:
		serve.Cut(s.listener, r)
	case NoFault, ResetBeforeBody:
	}
	if err != nil {
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	h := w.Header()
	if msg.version == V2 && !step.NoWritten {
		written := msg
		if !step.keeps() {
			written = &message{}
		}
		h.Set("X-Prometheus-Remote-Write-Samples-Written", strconv.Itoa(written.samples))
		h.Set("X-Prometheus-Remote-Write-Histograms-Written", strconv.Itoa(written.histograms))
		h.Set("X-Prometheus-Remote-Write-Exemplars-Written", strconv.Itoa(written.exemplars))
	}
	for name, values := range step.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	if step.RetryDate > 0 {
		h.Set("Retry-After", time.Now().Add(step.RetryDate).UTC().Format(http.TimeFormat))
	}
	w.WriteHeader(step.status())
	_, _ = w.Write([]byte(step.Body))
}

// step returns how to respond to a request.
func (s *Server) step(h http.Header) Step {
	if s.opts.Choose != nil {
		if step, ok := s.opts.Choose(h); ok {
			return step
		}
	}
	return s.Next()
}

func (s *Server) remember(r *http.Request, body []byte, msg *message, step Step, err error) {
	req := Request{
		At: time.Now(), Header: r.Header.Clone(), Version: msg.version, Encoding: msg.encoding,
		WireBytes: len(body), RawBytes: msg.rawBytes,
		Samples: msg.samples, Histograms: msg.histograms, Exemplars: msg.exemplars,
		Kept: err == nil && step.keeps(), Err: err,
	}
	switch {
	case step.Fault != NoFault:
	case err != nil:
		req.Status = statusOf(err)
	default:
		req.Status = step.status()
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) < maxRequests {
		s.requests = append(s.requests, req)
	}
	for _, v := range msg.violations {
		if len(s.violations) < maxViolations {
			s.violations = append(s.violations, v)
		}
	}
	if err != nil && len(s.violations) < maxViolations && statusOf(err) == http.StatusBadRequest {
		s.violations = append(s.violations, err.Error())
	}
	if !req.Kept {
		return
	}
	s.totals.Requests++
	s.totals.Samples += msg.samples
	s.totals.Histograms += msg.histograms
	s.totals.Exemplars += msg.exemplars
	s.totals.WireBytes += int64(len(body))
	s.totals.RawBytes += int64(msg.rawBytes)
	if !s.opts.CountOnly {
		s.memory.add(msg)
	}
	if s.opts.ObserveRequest != nil {
		s.opts.ObserveRequest(req, msg.series)
	}
	if s.opts.Observe != nil {
		for _, series := range msg.series {
			s.opts.Observe(series)
		}
	}
}

// String tells the totals, for messages of tests.
func (t Totals) String() string {
	return fmt.Sprintf("%d requests with %d samples, %d histograms and %d exemplars", t.Requests, t.Samples, t.Histograms, t.Exemplars)
}
