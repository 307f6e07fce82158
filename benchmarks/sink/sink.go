// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Larger messages are rejected.
const maxMessage = 1 << 30

// Sink serves remote write 1.0 and 2.0, OTLP and otlpstream on loopback ports.
type Sink struct {
	Ledger *Ledger
	wire   atomic.Int64

	http, grpc net.Listener
}

// Listen opens the ports. Serve must follow.
func Listen(ctx context.Context) (*Sink, error) {
	s := &Sink{Ledger: NewLedger()}
	for _, l := range []*net.Listener{&s.http, &s.grpc} {
		var listen net.ListenConfig
		opened, err := listen.Listen(ctx, "tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("cannot open a port of the sink: %w", err)
		}
		*l = countingListener{opened, &s.wire}
	}
	return s, nil
}

// HTTPAddress returns the address for remote write and OTLP/HTTP.
func (s *Sink) HTTPAddress() string { return s.http.Addr().String() }

// GRPCAddress returns the address for OTLP/gRPC and otlpstream.
func (s *Sink) GRPCAddress() string { return s.grpc.Addr().String() }

// Serve serves until ctx ends.
func (s *Sink) Serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/write", s.write)
	mux.HandleFunc("POST /v1/metrics", s.metrics)
	web := &http.Server{Handler: mux}
	rpc := newGRPC(s.Ledger)
	failed := make(chan error, 2)
	go func() { failed <- web.Serve(s.http) }()
	go func() { failed <- rpc.Serve(s.grpc) }()
	select {
	case <-ctx.Done():
	case err := <-failed:
		return fmt.Errorf("cannot serve: %w", err)
	}
	rpc.Stop()
	return web.Close()
}

// Stats returns the ledger's sums, with the bytes on the wire.
func (s *Sink) Stats() Stats {
	stats := s.Ledger.Stats()
	stats.Wire = s.wire.Load()
	return stats
}

// Reset forgets everything.
func (s *Sink) Reset() {
	s.Ledger.Reset()
	s.wire.Store(0)
}

func (s *Sink) write(w http.ResponseWriter, r *http.Request) {
	account := remoteWrite1
	if strings.Contains(r.Header.Get("Content-Type"), "io.prometheus.write.v2") {
		account = remoteWrite2
	}
	e, ok := s.account(w, r, account, "snappy")
	if !ok {
		return
	}
	h := w.Header()
	h.Set("X-Prometheus-Remote-Write-Samples-Written",
		fmt.Sprint(e.stats.Samples+e.stats.Own+e.stats.Created+e.stats.Stale+e.stats.Strangers))
	h.Set("X-Prometheus-Remote-Write-Histograms-Written", "0")
	h.Set("X-Prometheus-Remote-Write-Exemplars-Written", fmt.Sprint(e.stats.Exemplars))
	w.WriteHeader(http.StatusNoContent)
}

func (s *Sink) metrics(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.account(w, r, otlp, ""); ok {
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.WriteHeader(http.StatusOK)
	}
}

// account reads, decompresses and accounts for one request. otherwise is the coding of bodies without a
// Content-Encoding.
func (s *Sink) account(w http.ResponseWriter, r *http.Request, account func([]byte, *entry) error, otherwise string) (*entry, bool) {
	body := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(body)
	body.Reset()
	plain := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(plain)
	plain.Reset()
	coding := r.Header.Get("Content-Encoding")
	if coding == "" {
		coding = otherwise
	}
	_, err := body.ReadFrom(r.Body)
	var message []byte
	if err == nil {
		message, err = decompress(plain, coding, body.Bytes())
	}
	var e *entry
	if err == nil {
		e = newEntry(len(message))
		err = account(message, e)
	}
	if err != nil {
		s.Ledger.failed()
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil, false
	}
	s.Ledger.add(e)
	return e, true
}

var errCoding = errors.New("unknown content coding")

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

var zstdReader = func() *zstd.Decoder {
	r, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxMessage))
	if err != nil {
		panic(err) // the options are constants
	}
	return r
}()

// decompress returns the message, which may share memory with dst or body.
func decompress(dst *bytes.Buffer, coding string, body []byte) (message []byte, err error) {
	switch coding {
	case "", "identity":
		return body, nil
	case "snappy":
		message, err = s2.Decode(dst.AvailableBuffer()[:dst.Available()], body)
	case "zstd":
		message, err = zstdReader.DecodeAll(body, dst.AvailableBuffer())
	case "gzip":
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			_, err = dst.ReadFrom(io.LimitReader(r, maxMessage))
		}
		return dst.Bytes(), err
	default:
		return nil, errCoding
	}
	if err == nil && cap(message) > dst.Cap() {
		*dst = *bytes.NewBuffer(message) // keep the larger buffer
	}
	return message, err
}

// countingListener counts the bytes that its connections read.
type countingListener struct {
	net.Listener

	read *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countingConn{c, l.read}, err
}

type countingConn struct {
	net.Conn

	read *atomic.Int64
}

func (c countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}
