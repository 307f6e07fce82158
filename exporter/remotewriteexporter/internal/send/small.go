// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

const (
	// largestHolds is how long a request shows what the destination accepts.
	largestHolds = 10 * time.Minute
	// smallTime is how long a request is repeated that is refused as too large although it is too small to be split.
	smallTime = 5 * time.Minute
	// fewSmall is how many refusals are enough when the destination accepts others in between.
	fewSmall = 6
	// soonAfter is how soon after such a request was last repeated another must be accepted, for the content to have been
	// the reason.
	soonAfter = time.Minute
)

// taken is what a destination accepted lately, of all data or of a tenant's.
type taken struct {
	mu           sync.Mutex
	raw          int       // of the largest request, before compression
	at           time.Time // when that was
	last         time.Time // of any request
	repeatsEnded time.Time // when a small one was last repeated to no effect
	contents     time.Time // when it turned out that some are refused for their content
}

func (t *taken) delivered(raw int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if raw >= t.raw || now.Sub(t.at) > largestHolds {
		t.raw, t.at = raw, now
	}
	if t.last = now; !t.repeatsEnded.IsZero() {
		if now.Sub(t.repeatsEnded) < soonAfter {
			t.contents = now
		}
		t.repeatsEnded = time.Time{}
	}
}

// covers reports whether that much was accepted lately.
func (t *taken) covers(raw int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return raw <= t.raw && time.Since(t.at) <= largestHolds
}

// since reports whether anything was accepted since then.
func (t *taken) since(some time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last.After(some)
}

// refuses reports whether some requests were refused for their content lately.
func (t *taken) refuses(within time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.contents.IsZero() && time.Since(t.contents) < within
}

// blameContent records that some requests were refused for their content.
func (t *taken) blameContent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.contents = time.Now()
}

// endRepeats records that one was repeated for long enough.
func (t *taken) endRepeats() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.repeatsEnded = time.Now()
}

var errSmall = errors.New("a part of a request is refused as too large that is too small to be split")

// halves splits a request, unless it is too small.
func halves(b block.Block) (first, second block.Block, err error) {
	if b.RawSize < minSplit {
		return first, second, errSmall
	}
	return block.Split(b)
}

// small is a request that cannot be split, or is too small to be, and was refused as too large. If the destination
// accepted as much lately, it is not about the size: something in between is broken, which will pass, or it is the
// content, which will not. So it is repeated for a while, and only a few times if others are accepted meanwhile; and
// for some time after that failed not at all.
type small struct {
	since, last time.Time // time of the first refusal, and of the last; zero if there is none
	times       int
	against     int // of these, the ones after others had been accepted
}

// mayPass reports whether a small request that was refused is to be repeated.
func (d *Destination) mayPass(b block.Block, s *small, started time.Time) bool {
	t, now := &d.limitOn(b).passed, time.Now()
	if s.since.IsZero() {
		if !t.covers(b.RawSize) || t.refuses(d.cfg.Reprobe) {
			return false
		}
		s.since, s.last = now, now
	}
	if s.times++; d.all.passed.since(s.last) {
		s.against++
	}
	s.last = now
	switch limit := d.cfg.Retry.MaxElapsedTime; {
	case limit > 0 && now.Sub(started) >= limit:
		return false
	case s.against >= fewSmall:
		t.blameContent()
		return false
	case now.Sub(s.since) >= smallTime:
		t.endRepeats()
		return false
	}
	return true
}

// waitForSmall pauses before a small request is repeated.
func (d *Destination) waitForSmall(ctx context.Context, b block.Block, s *small, spread float64) error {
	refused := answer{code: http.StatusRequestEntityTooLarge}
	d.telemetry.Retried(refused.reason())
	d.mu.Lock()
	news := time.Since(d.smallAt) >= complainInterval
	if news {
		d.smallAt = time.Now()
	}
	d.mu.Unlock()
	if news {
		d.log.Warn("destination refuses even the smallest requests as too large, although it accepted them before; they are retried for a while",
			zap.Int("code", refused.code), zap.Int("bytes before compression", b.RawSize), zap.Duration("for", smallTime))
	}
	return d.cfg.Retry.wait(ctx, s.times-1, false, spread, 0)
}
