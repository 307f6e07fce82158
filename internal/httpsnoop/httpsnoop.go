// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpsnoop replaces the module of its path in the agent: see docs/design/025.
//
// OpenTelemetry's instrumentation of HTTP servers counts answers by it. A writer of answers has optional methods, which a
// wrapper must have as well, and no others. The original has a type for each of the 512 combinations. This one has those
// that net/http's writers have, and leaves the rest to [http.ResponseController], which calls Unwrap. It has the hooks that
// the instrumentation sets.
package httpsnoop

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"time"
)

// HeaderFunc is a writer's Header.
type HeaderFunc func() http.Header

// WriteHeaderFunc is a writer's WriteHeader.
type WriteHeaderFunc func(code int)

// WriteFunc is a writer's Write.
type WriteFunc func(b []byte) (int, error)

// FlushFunc is a writer's Flush.
type FlushFunc func()

// Hooks returns what is called instead of a writer's method. The other methods remain those of the writer, except that
// WriteString calls the hook of Write, and FlushError that of Flush.
type Hooks struct {
	Header      func(HeaderFunc) HeaderFunc
	WriteHeader func(WriteHeaderFunc) WriteHeaderFunc
	Write       func(WriteFunc) WriteFunc
	Flush       func(FlushFunc) FlushFunc
}

// Wrap returns a writer whose methods are replaced by hooks. If w is one of net/http, it has the same optional methods.
func Wrap(w http.ResponseWriter, hooks Hooks) http.ResponseWriter {
	wrapped := writer{
		w, hooked[HeaderFunc](hooks.Header, w.Header), hooked[WriteHeaderFunc](hooks.WriteHeader, w.WriteHeader), hooked[WriteFunc](hooks.Write, w.Write),
	}
	f, ok := w.(flusher)
	if !ok {
		return &wrapped
	}
	flushing := flushingWriter{wrapped, f, hooked[FlushFunc](hooks.Flush, f.Flush), hooks.Flush}
	switch w := w.(type) {
	case connection:
		return &connectionWriter{flushing, w, w}
	case stream:
		return &streamWriter{flushing, w, w}
	default:
		return &flushing
	}
}

// hooked returns what is called instead of f.
func hooked[F any](hook func(F) F, f F) F {
	if hook == nil {
		return f
	}
	return hook(f)
}

// writer wraps any writer.
type writer struct {
	inner       http.ResponseWriter
	header      HeaderFunc
	writeHeader WriteHeaderFunc
	write       WriteFunc
}

func (w *writer) Header() http.Header         { return w.header() }
func (w *writer) WriteHeader(code int)        { w.writeHeader(code) }
func (w *writer) Write(b []byte) (int, error) { return w.write(b) }

// Unwrap is what [http.ResponseController] finds other methods by.
func (w *writer) Unwrap() http.ResponseWriter { return w.inner }

// flusher is what all writers of net/http have that flush.
type flusher interface {
	http.Flusher
	FlushError() error
	io.StringWriter
}

// flushingWriter wraps a writer that flushes.
type flushingWriter struct {
	writer

	inner flusher
	flush FlushFunc
	hook  func(FlushFunc) FlushFunc // nil if there is none
}

func (w *flushingWriter) WriteString(s string) (int, error) { return w.write([]byte(s)) }

func (w *flushingWriter) Flush() { w.flush() }

// FlushError flushes as the hook does, and returns the error of the writer, which Flush does not tell.
func (w *flushingWriter) FlushError() (err error) {
	flush := func() { err = w.inner.FlushError() }
	hooked[FlushFunc](w.hook, flush)()
	return err
}

// controls is what writers of both protocols have.
type controls interface {
	http.CloseNotifier //nolint:staticcheck // a wrapper has it if the writer has it
	SetReadDeadline(deadline time.Time) error
	SetWriteDeadline(deadline time.Time) error
	EnableFullDuplex() error
}

// connection is what a writer of HTTP/1 has.
type connection interface {
	controls
	http.Hijacker
	io.ReaderFrom
}

// connectionWriter wraps a writer of HTTP/1.
type connectionWriter struct {
	flushingWriter
	controls

	inner connection
}

func (w *connectionWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.inner.Hijack() }
func (w *connectionWriter) ReadFrom(from io.Reader) (int64, error)       { return w.inner.ReadFrom(from) }

// stream is what a writer of HTTP/2 has.
type stream interface {
	controls
	http.Pusher
}

// streamWriter wraps a writer of HTTP/2.
type streamWriter struct {
	flushingWriter
	controls

	inner stream
}

func (w *streamWriter) Push(target string, options *http.PushOptions) error {
	return w.inner.Push(target, options)
}
