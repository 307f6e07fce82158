// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// The values of Mode.
const (
	Auto   = "auto"
	Stream = "stream"
	Unary  = "unary"
)

// Streams reports whether to stream the next request. While requests are sent one by one, one per interval is a probe.
func (s *Server) Streams(now time.Time) bool { return s.modes.stream(now) }

// Streaming reports whether requests are streamed, without deciding anything.
func (s *Server) Streaming() bool { return s.modes.streaming() }

// Streamed records that a stream has answered.
func (s *Server) Streamed() { s.modes.worked() }

// KnowsNoStreams records that the server said that it has none.
func (s *Server) KnowsNoStreams(now time.Time) {
	if s.modes.refused(now) {
		s.Logger.Info("The server does not support streams: requests are sent one by one",
			zap.String("endpoint", s.Endpoint), zap.Duration("reprobe_interval", s.Reprobe))
	}
}

// AvoidStreams uses no streams from now on, if there is another way, and logs why the first time: a stream would be opened
// with less about the client than was asked for.
func (s *Server) AvoidStreams(advice string) {
	if !s.modes.forgo() {
		return
	}
	text := "The authenticator sets headers by the client that a request came from, which a stream does not know: requests are sent one by one"
	if s.Mode == Stream {
		text = "The authenticator sets headers by the client that a request came from, which a stream does not know: it sets its defaults for all"
	}
	s.Logger.Warn(text, zap.String("endpoint", s.Endpoint), zap.String("advice", advice))
}

// modes decides whether a request is streamed.
type modes struct {
	mode    string
	reprobe time.Duration

	mu sync.Mutex
	// unaryUntil is when to try a stream again; zero while streaming.
	unaryUntil time.Time
	// streamed says that some stream has worked, and refusals how many in a row were refused since.
	streamed bool
	refusals int
	// avoids says that streams cannot carry what requests need.
	avoids bool
}

// A destination that has streamed may be several servers, some of them older. A single refusal means nothing then; this
// many in a row mean that streams are gone.
const refusalsToUnary = 3

// stream reports whether to stream the next request. While requests are sent one by one, one in each interval is a
// probe.
func (m *modes) stream(now time.Time) bool {
	switch m.mode {
	case Stream:
		return true
	case Unary:
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.avoids {
		return false
	}
	if m.unaryUntil.IsZero() {
		return true
	}
	if now.Before(m.unaryUntil) {
		return false
	}
	m.unaryUntil = now.Add(m.reprobe)
	return true
}

// worked records that a stream has answered.
func (m *modes) worked() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streamed, m.refusals, m.unaryUntil = true, 0, time.Time{}
}

// refused records that the server has no streams, and reports whether that is news.
func (m *modes) refused(now time.Time) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusals++
	if m.mode != Auto || m.streamed && m.refusals < refusalsToUnary {
		return false
	}
	news = m.unaryUntil.IsZero()
	m.streamed, m.unaryUntil = false, now.Add(m.reprobe)
	return news
}

// forgo uses no streams from now on, if there is another way, and reports whether that is news.
func (m *modes) forgo() (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	news = !m.avoids
	m.avoids = true
	return news
}

// streaming reports whether requests are streamed, without changing that.
func (m *modes) streaming() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mode == Stream || m.mode == Auto && m.unaryUntil.IsZero() && !m.avoids
}
