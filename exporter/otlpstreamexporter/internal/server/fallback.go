// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync/atomic"

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

// next returns the step to try after one that was refused with a status.
func (f *fallback) next(step int, st *status.Status) (int, bool) {
	if step+1 >= len(f.steps) {
		return 0, false
	}
	switch st.Code() {
	case codes.Unimplemented:
		return step + 1, true
	case codes.InvalidArgument: // the bytes were read as if not compressed
		// Another request may have proven a later step while this one was in flight.
		return step + 1, !f.proven.Load() || step < int(f.at.Load())
	}
	return 0, false
}

// taken records that a request was accepted in a step, and reports whether that is a change.
func (f *fallback) taken(step int) (changed bool) {
	before := f.at.Swap(int32(step))
	f.proven.Store(true)
	return int(before) != step
}

// Compression returns the compression of streams and of new requests.
func (s *Server) Compression() configcompression.Type { return s.fallback.inUse() }

// Compressed sends a request in the first compression that the server accepts, starting with a step, and returns the
// step to start with if the request is sent again.
func (s *Server) Compressed(from int, send func(configcompression.Type) ([]byte, error)) (response []byte, again int, err error) {
	f := s.fallback
	var first error
	for step := max(from, int(f.at.Load())); ; {
		response, err := send(f.steps[step])
		if err == nil {
			if f.taken(step) {
				s.Logger.Warn("The server does not accept the compression of `compression`: requests are sent with another",
					zap.String("endpoint", s.Endpoint), zap.String("compression", string(f.steps[step])), zap.Error(first))
			}
			return response, from, nil
		}
		if first == nil {
			first = err
		}
		next, ok := f.next(step, status.Convert(err))
		switch {
		case ok:
			step = next
		case status.Code(err) == codes.Unimplemented || status.Code(err) == codes.InvalidArgument:
			return nil, from, first // refused in any case: the first answer tells most
		default:
			return nil, step, err // it is tried again from here
		}
	}
}
