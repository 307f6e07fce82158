// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

// TraceContext is the span that a request is part of, in the bytes of W3C's traceparent: 16 of the trace's ID, 8 of the
// span's, and one of flags. All zeros means none.
//
// A stream has headers only once, so each request has its own.
type TraceContext [16 + 8 + 1]byte

// NewTraceContext returns a trace context of these parts.
func NewTraceContext(trace [16]byte, span [8]byte, flags byte) (c TraceContext) {
	copy(c[:16], trace[:])
	copy(c[16:], span[:])
	c[24] = flags
	return c
}

// Parts returns the parts given to NewTraceContext.
func (c TraceContext) Parts() (trace [16]byte, span [8]byte, flags byte) {
	return [16]byte(c[:16]), [8]byte(c[16:24]), c[24]
}

// IsZero reports whether there is none.
func (c TraceContext) IsZero() bool { return c == TraceContext{} }
