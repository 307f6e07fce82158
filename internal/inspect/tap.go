// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// A Tap is a place in a component where one can look at passing data: some points of one batch. A receiver has it where
// it hands data on, an exporter where it accepts data, and a processor around its work. While nobody looks, a batch
// costs one atomic load. The zero value is ready.
type Tap struct {
	open    atomic.Bool // somebody waits
	mu      sync.Mutex
	waiting []chan Glance // guarded by mu
	seen    uint64        // guarded by mu: batches that were looked at
}

// maxLookers limits the number of observers waiting at a tap.
const maxLookers = 8

// Fates of a point in a processor.
const (
	FatePassed  = "passed"
	FateChanged = "changed"
	FateGone    = "gone"
	FateUnknown = "unknown" // the batch was too large to find it
)

// A Glance is what was seen of one batch.
type Glance struct {
	At     time.Time `json:"at"`
	Signal string    `json:"signal"`
	In     int       `json:"in"`  // points, spans or records in the batch
	Out    int       `json:"out"` // the number after the processor; elsewhere the same as In
	Points []Sight   `json:"points"`
}

// A Sight is one point of a batch, and what happened to it.
type Sight struct {
	Point

	Fate  string `json:"fate"`
	After *Point `json:"after"` // if it was changed
}

// A Point is a data point, a span or a log record, for display. Long texts are cut.
type Point struct {
	Name       string    `json:"name"` // of the metric or the span; of a record its severity
	Kind       string    `json:"kind"` // gauge, sum, histogram, span, log
	Value      string    `json:"value"`
	At         time.Time `json:"at"`
	Resource   []Label   `json:"resource"`
	Attributes []Label   `json:"attributes"`
}

// Look waits for a batch, and returns some of it. It returns the context's error if none comes, and false if too many
// others are waiting.
func (t *Tap) Look(ctx context.Context) (Glance, bool, error) {
	place := make(chan Glance, 1)
	if !t.enter(place) {
		return Glance{}, false, nil
	}
	defer t.leave(place)
	select {
	case g := <-place:
		return g, true, nil
	case <-ctx.Done():
		return Glance{}, true, ctx.Err()
	}
}

func (t *Tap) enter(place chan Glance) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) >= maxLookers {
		return false
	}
	t.waiting = append(t.waiting, place)
	t.open.Store(true)
	return true
}

func (t *Tap) leave(place chan Glance) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.waiting {
		if other == place {
			t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
			break
		}
	}
	t.open.Store(len(t.waiting) > 0)
}

// take returns the waiting observers, and removes them: they get only this batch.
func (t *Tap) take() (waiting []chan Glance, nth uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting, t.waiting = t.waiting, nil
	t.open.Store(false)
	t.seen++
	return waiting, t.seen
}

// IsOpen reports whether somebody is waiting. Whoever comes a moment later sees the next batch.
func (t *Tap) IsOpen() bool { return t.open.Load() }

// Metrics shows a batch to those waiting. It only reads it.
func (t *Tap) Metrics(md pmetric.Metrics) {
	if t.open.Load() {
		t.before(md).Pass()
	}
}

// Before records a batch as it enters a processor, for those waiting. They see it when After is called on the result,
// which is nil if nobody is waiting.
func (t *Tap) Before(md pmetric.Metrics) *Passing {
	if !t.open.Load() {
		return nil
	}
	return t.before(md)
}

func (t *Tap) before(md pmetric.Metrics) *Passing {
	waiting, nth := t.take()
	if len(waiting) == 0 {
		return nil
	}
	return newPassing(waiting, md, nth)
}

// Logs shows a batch to those waiting. It only reads it.
func (t *Tap) Logs(ld plog.Logs) {
	if t.open.Load() {
		t.show(func(nth uint64) Glance { return glanceOfLogs(ld, nth) })
	}
}

// Traces shows a batch to those waiting. It only reads it.
func (t *Tap) Traces(td ptrace.Traces) {
	if t.open.Load() {
		t.show(func(nth uint64) Glance { return glanceOfTraces(td, nth) })
	}
}

func (t *Tap) show(glance func(nth uint64) Glance) {
	if waiting, nth := t.take(); len(waiting) > 0 {
		tell(waiting, glance(nth))
	}
}

func tell(waiting []chan Glance, g Glance) {
	g.At = time.Now()
	for _, place := range waiting {
		place <- g // it has room for one, and gets only one
	}
}
