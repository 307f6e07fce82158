// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/config/configcompression"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// noCompression is tried last. Every server accepts it.
const noCompression configcompression.Type = "none"

// fallback finds the compression that a server accepts. OTLP requires gzip of servers, and no other; a server that does
// not know a compression refuses the request, in many ways. So a request that may be refused for its compression is
// tried with the next one, and the first that is accepted is remembered for the destination.
type fallback struct {
	steps []configcompression.Type // the configured one first
	at    atomic.Int32             // the step in use
	// proven says that a request was accepted in the current step: later refusals have other reasons.
	proven atomic.Bool
	// passed is when a request was first accepted after a proxy had refused it in the step in use, 0 if none was.
	passed atomic.Int64
}

func newFallback(configured configcompression.Type) *fallback {
	f := &fallback{steps: []configcompression.Type{configured}}
	if configured.IsCompressed() {
		if configured != configcompression.TypeGzip {
			f.steps = append(f.steps, configcompression.TypeGzip)
		}
		f.steps = append(f.steps, noCompression)
	}
	return f
}

func (f *fallback) inUse() configcompression.Type { return f.steps[f.at.Load()] }

// next returns the step to try after one that failed, possibly with an answer of a proxy.
func (f *fallback) next(step int, err error, byProxy bool) (int, bool) {
	if step+1 >= len(f.steps) {
		return 0, false
	}
	// Another request may have proven a later step while this one was in flight.
	unproven := !f.proven.Load() || step < int(f.at.Load())
	switch status.Code(err) {
	case codes.Unimplemented: // or a proxy has no rule for the address
		return step + 1, unproven || !byProxy
	case codes.InvalidArgument: // the bytes were read as if not compressed
		return step + 1, unproven
	}
	return 0, false
}

// mayBePassing reports whether a proxy may have refused a request for another reason than its compression, which has
// ended by now: then nothing is learnt from what it accepts. It is false if the request was refused after another one
// had been accepted in this way. began is when it was sent first.
func (f *fallback) mayBePassing(began time.Time) bool {
	f.passed.CompareAndSwap(0, time.Now().UnixNano())
	return began.UnixNano() <= f.passed.Load()
}

// taken records that a request was accepted in a step, and reports whether that is a change.
func (f *fallback) taken(step int) (changed bool) {
	if f.passed.Load() != 0 {
		f.passed.Store(0)
	}
	before := f.at.Swap(int32(step))
	f.proven.Store(true)
	return int(before) != step
}

// Compression returns the compression of streams and of new requests.
func (s *Server) Compression() configcompression.Type { return s.fallback.inUse() }

// Compressed sends a request in the first compression that the server accepts, starting with a step, and returns the
// step to start with if the request is sent again.
func (s *Server) Compressed(from int, send func(configcompression.Type) ([]byte, error)) (response []byte, again int, err error) {
	f, began := s.fallback, time.Now()
	var first error
	for step := max(from, int(f.at.Load())); ; {
		response, err := send(f.steps[step])
		if err == nil {
			if first != nil && s.ByProxy(first) && f.mayBePassing(began) {
				return response, from, nil
			}
			if f.taken(step) {
				s.Logger.Warn("The server does not accept the compression of `compression`: requests are sent with another",
					zap.String("endpoint", s.Endpoint), zap.String("compression", string(f.steps[step])), zap.Error(first))
			}
			return response, from, nil
		}
		if first == nil {
			first = err
		}
		next, ok := f.next(step, err, s.ByProxy(err))
		switch {
		case ok:
			step = next
		case status.Code(err) == codes.Unimplemented || status.Code(err) == codes.InvalidArgument:
			return nil, from, first // refused in any case: the first answer tells most
		case s.ByProxy(first):
			return nil, from, err
		default:
			return nil, step, err // it is tried again from here
		}
	}
}
