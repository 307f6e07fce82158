// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/config/configcompression"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// slotState is a slot's state that the choice of a slot depends on.
type slotState struct {
	// unanswered is the bytes that were sent without an answer yet.
	unanswered atomic.Int64
	// full is set while the slot waits for room, failing if its last stream broke before anything was answered.
	full, failing atomic.Bool
}

func (s *slotState) away() bool { return s.full.Load() || s.failing.Load() }

// homeWait is how long a request waits for the stream that knows its resource, before any other may take it.
const homeWait = 100 * time.Millisecond

// choose returns the slot for a delivery, and whether another one would be worse: for metrics, each stream would have
// to learn what it is sent. Otherwise it is the slot with the least to do; equal ones take turns, since behind a
// balancer each may lead to another server.
func (l *lane) choose(p *delivery) (best *slot, atHome bool) {
	if len(l.slots) == 0 {
		return nil, false
	}
	if p.home != 0 {
		if s := l.slots[p.home%uint64(len(l.slots))]; !s.away() {
			return s, true
		}
	}
	first := int((l.turns.Add(1) - 1) % uint64(len(l.slots)))
	best = l.slots[first]
	for i := 1; i < len(l.slots); i++ {
		s := l.slots[(first+i)%len(l.slots)]
		switch away := s.away(); {
		case away != best.away():
			if !away {
				best = s
			}
		case s.unanswered.Load() < best.unanswered.Load():
			best = s
		}
	}
	return best, false
}

// homeOf is a hash of the resource of a request if streams learn resources, else 0.
func (d *destination) homeOf(data []byte) uint64 {
	if d.signal != otlpstream.Metrics || d.cfg.HistoryBytes == 0 || d.cfg.Streams < 2 || d.cfg.Ordered ||
		d.client.Compression != configcompression.TypeZstd {
		return 0
	}
	return otlpstream.HashResource(data)
}

// hand gives a delivery to a slot with room, which includes waiting for the gate and for a connection.
func (l *lane) hand(ctx context.Context, p *delivery) (outcome, bool) {
	var own chan *delivery
	best, atHome := l.choose(p)
	if best != nil {
		own = best.own
	}
	select {
	case own <- p:
		return outcome{}, true
	default:
	}
	ready, waited := l.ready, (<-chan time.Time)(nil)
	if atHome {
		t := time.NewTimer(homeWait)
		defer t.Stop()
		ready, waited = nil, t.C
	}
	expired, stop := l.expiry(p)
	defer stop()
	for {
		select {
		case own <- p:
			return outcome{}, true
		case ready <- p:
			return outcome{}, true
		case <-waited:
			ready = l.ready
		case <-expired:
			return outcome{verdict: failure, reason: account.RetriesExhausted, err: errors.New("there is no stream to send it on")}, false
		case <-ctx.Done():
			return outcome{verdict: retry, err: ctx.Err()}, false
		}
	}
}
