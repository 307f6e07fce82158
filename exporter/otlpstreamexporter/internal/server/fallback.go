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

// noCompression is the last that is tried. Every server takes it.
const noCompression configcompression.Type = "none"

// fallback finds the compression that a server takes. OTLP asks servers to know gzip, and no other; one that does not know
// what it gets refuses the request, and says so in many ways. So a request that is refused for what may be its compression
// is tried with the next one, and the first that is taken is remembered for the destination.
type fallback struct {
	steps []configcompression.Type // the configured one first
	at    atomic.Int32             // the step in use
	// proven tells that a request was taken in the step in use: what is refused from then on is refused for something else.
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
	case codes.InvalidArgument: // as if the bytes were not compressed
		// Another request may have found the step in use while this one was in progress in an earlier one.
		return step + 1, !f.proven.Load() || step < int(f.at.Load())
	}
	return 0, false
}

// taken records that a request was taken in a step, and reports whether it is another than before.
func (f *fallback) taken(step int) (changed bool) {
	before := f.at.Swap(int32(step))
	f.proven.Store(true)
	return int(before) != step
}

// Compression is that of streams, and of requests that were not refused yet.
func (s *Server) Compression() configcompression.Type { return s.fallback.inUse() }

// Compressed sends a request in the first compression that the server takes, from a step on, and returns the step to begin with if
// the request is sent again.
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
			return nil, from, first // in whatever way it is sent: the first answer tells most
		default:
			return nil, step, err // it is tried again from here
		}
	}
}
