// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"context"
	"sync"
	"time"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// sampleInterval is the time between two points of the history.
const sampleInterval = 10 * time.Second

// A reading is what all components have counted up to a moment. It never changes.
type reading struct {
	at         time.Time
	flows      map[*source]inspect.Flow
	deliveries map[*source]inspect.Delivery
	process    process
}

func (c *console) read() *reading {
	sources := c.all()
	r := &reading{
		at: c.now(), flows: make(map[*source]inspect.Flow, len(sources)), deliveries: map[*source]inspect.Delivery{}, process: readProcess(),
	}
	for _, s := range sources {
		if s.Flow != nil {
			r.flows[s] = s.Flow()
		}
		if s.Delivery != nil {
			r.deliveries[s] = s.Delivery()
		}
	}
	return r
}

// has tells whether the source was there.
func (r *reading) has(s *source) bool {
	_, flows := r.flows[s]
	_, delivers := r.deliveries[s]
	return flows || delivers
}

// run samples.
func (c *console) run(ctx context.Context) {
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.sample()
		}
	}
}

// sample adds a point to the history.
func (c *console) sample() {
	now := c.read()
	before, _ := c.readings.since(now.at, now)
	c.ring.add(now.at, newTotals(before, now, c.graph()), c.destinations(before, now))
	c.shared.forget(now.at)
}

// lookNow returns the present reading and the one to compare it with, which is nil at first.
func (c *console) lookNow() (before, now *reading) {
	now = c.read()
	before, _ = c.readings.since(now.at, now)
	return before, now
}

// past keeps two earlier readings, so that there always is one that rates can be made from: neither so recent that they
// jump, nor so old that they are yesterday's.
type past[T any] struct {
	mu           sync.Mutex
	older, newer kept[T]
}

type kept[T any] struct {
	at    time.Time
	value T
	set   bool
}

const (
	leastAge = time.Second
	mostAge  = 40 * time.Second
)

// since returns an earlier reading and its age, if there is one, and may keep the present one for later.
func (p *past[T]) since(now time.Time, value T) (before T, age time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, earlier := range []*kept[T]{&p.older, &p.newer} {
		if age = now.Sub(earlier.at); earlier.set && age >= leastAge && age <= mostAge {
			before = earlier.value
			break
		}
		age = 0
	}
	// A little less than the interval, for one tick may come later than the next.
	if !p.newer.set || now.Sub(p.newer.at) >= sampleInterval*9/10 {
		p.older = p.newer
		p.newer = kept[T]{now, value, true}
	}
	return before, age
}

// stretch returns what a source had counted at the beginning of a stretch, and how many seconds ago that was: 0 if there
// is nothing to compare with. A component that is younger than the earlier reading began with nothing.
func stretch(before, now *reading, s *source) (earlier inspect.Flow, seconds float64) {
	if before == nil {
		return earlier, 0
	}
	began := before.at
	if !before.has(s) {
		began = s.since
	}
	if now.at.Sub(began) < leastAge {
		return before.flows[s], 0
	}
	return before.flows[s], now.at.Sub(began).Seconds()
}

// destinationBefore is what a destination had counted at the beginning of the stretch.
func destinationBefore(before *reading, s *source, i int, name string) (earlier inspect.Destination) {
	if before == nil {
		return earlier
	}
	if all := before.deliveries[s].Destinations; i < len(all) && all[i].Name == name {
		return all[i]
	}
	return earlier
}

// flowBetween returns what a source has counted between two readings, as rates.
func flowBetween(before, now *reading, s *source) rates {
	a, seconds := stretch(before, now, s)
	b := now.flows[s]
	per := func(a, b int64) *float64 {
		if seconds == 0 || a < 0 || b < a {
			return nil
		}
		return number(float64(b-a) / seconds)
	}
	var out map[string]*float64
	for signal, now := range b.Signals {
		if out == nil {
			out = map[string]*float64{}
		}
		out[signal] = per(a.Signals[signal].Out, now.Out)
	}
	return rates{
		out: out,
		In:  per(a.In, b.In), Out: per(a.Out, b.Out), Limited: per(a.Limited, b.Limited), Refused: per(a.Refused, b.Refused),
		Dropped: per(total(a.Dropped), total(b.Dropped)), WireBytes: per(a.WireBytes, b.WireBytes), RawBytes: per(a.RawBytes, b.RawBytes),
	}
}

func total(counts map[string]int64) (sum int64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

func number(f float64) *float64 { return &f }

// plus adds what is known; unknown and unknown stay so.
func plus(a, b *float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return number(*a + *b)
}
