// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"sync"
	"time"
)

// modes decides whether a request is streamed.
type modes struct {
	mode    string
	reprobe time.Duration

	mu sync.Mutex
	// unaryUntil is when to try a stream again; zero while streaming.
	unaryUntil time.Time
	// streamed tells that some stream has worked, and refusals how many in a row were refused since.
	streamed bool
	refusals int
	// forgone tells that streams cannot say what requests have to.
	forgone bool
}

// A destination that has streamed may be several servers, some of them older. One refusal says nothing then; so many
// in a row say that streams are gone.
const refusalsToUnary = 3

// stream tells whether to stream the next request. While requests are sent one by one, one in each interval is a
// probe.
func (m *modes) stream(now time.Time) bool {
	switch m.mode {
	case modeStream:
		return true
	case modeUnary:
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.forgone {
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

// worked notes that a stream has answered.
func (m *modes) worked() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streamed, m.refusals, m.unaryUntil = true, 0, time.Time{}
}

// refused notes that the server knows no streams, and tells whether that is news.
func (m *modes) refused(now time.Time) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusals++
	if m.mode != modeAuto || m.streamed && m.refusals < refusalsToUnary {
		return false
	}
	news = m.unaryUntil.IsZero()
	m.streamed, m.unaryUntil = false, now.Add(m.reprobe)
	return news
}

// forgo does without streams from now on, where there is another way, and tells whether that is news.
func (m *modes) forgo() (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	news = !m.forgone
	m.forgone = true
	return news
}

// streaming tells which way requests go, without a say in it.
func (m *modes) streaming() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mode == modeStream || m.mode == modeAuto && m.unaryUntil.IsZero() && !m.forgone
}
