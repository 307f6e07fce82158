// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"sync"
	"time"
)

// progress is how far requests have come according to answers, on a stream or to a destination. On a slow link a
// request waits for all that was sent before; so its timeout runs only while nothing else is answered, or once a later
// request is.
type progress struct {
	mu sync.Mutex
	// heard is when the last answer came; newest is when the latest answered request was sent.
	heard, newest time.Time
}

// answered records an answer to a request.
func (p *progress) answered(sent, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard, p.newest = now, later(p.newest, sent)
}

// working records that the server is working on what it has read.
func (p *progress) working(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = now
}

func (p *progress) snapshot() (heard, newest time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard, p.newest
}

// overtakings are when a request was first seen to be overtaken by a later one: on its own stream, and on any stream to
// its destination.
type overtakings struct{ own, any time.Time }

// dueSince returns when the timeout of a request began. Answers to earlier requests restart the timeout; there is a
// limited number of these. Another stream may be faster, so being overtaken there counts only while its own is silent.
func (o *overtakings) dueSince(sent, now time.Time, stream, destination *progress) time.Time {
	heard, newest := stream.snapshot()
	if sent.Before(newest) {
		if o.own.IsZero() {
			o.own = now
		}
		return o.own
	}
	since := later(sent, heard)
	heard, newest = destination.snapshot()
	if !sent.Before(newest) {
		return later(since, heard)
	}
	if o.any.IsZero() {
		o.any = now
	}
	return later(since, o.any)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
