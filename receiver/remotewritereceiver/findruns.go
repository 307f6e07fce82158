// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"math"
	"slices"

	"github.com/godwit-otel/godwit/internal/borrow"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/slab"
)

// stretch is consecutive series of a target that may become a run.
//
// It ends where the target does, or the request, and before each metric whose first series is a border by its hash, as
// a fixed part of them are. Borders are the same wherever a request begins and ends. What came between two of them
// becomes a run when the same comes a second time.
type stretch struct {
	of    *target
	name  string
	steps []step
	hash  uint64
}

// runFinder finds runs in a request, and learns new ones.
type runFinder struct {
	request *request

	stretch stretch
	// The last run, its target, and the index of the series after it.
	lastRun    *run
	lastRunEnd int
	lastRunOf  *target

	encodings encodings
	joined    []byte       // memory for later calls
	floats    []slab.Float // memory for later calls
}

func (f *runFinder) reset() {
	f.stretch = stretch{steps: f.stretch.steps[:0]}
	clear(f.stretch.steps[:cap(f.stretch.steps)])
	f.lastRun, f.lastRunOf = nil, nil
	f.encodings.reset()
}

// learn records a series that was translated by itself.
func (f *runFinder) learn(s *promwrite.Series, set *labelSet, of *target) {
	family := set.family.Load()
	if set.self == 0 || s.Encoded == "" || len(s.Samples) != 1 || len(s.Histograms) > 0 || !set.attributes.Are() ||
		(set.raw != nil) != (f.request.version == promwrite.V1) || family == nil || !family.is(s) || !family.metadata.Are() {
		f.endStretch()
		return
	}
	l := &f.stretch
	if l.of != of || len(l.steps) == mostRun || family.metric != l.name && set.self%borders == 0 {
		f.endStretch()
		l.of = of
	}
	l.name = family.metric
	l.steps = append(l.steps, stepOf(set, family, l.steps))
	l.hash = mix(l.hash, set.self)
}

func stepOf(set *labelSet, f *family, before []step) step {
	s := step{set: set, family: f}
	if raw := set.raw; raw != nil {
		first := raw
		if len(before) > 0 {
			first = before[0].set.raw
		}
		s.parted = raw.n != first.n || raw.holes != first.holes || raw.n > 1 && raw.parts[1] != ""
	}
	return s
}

// endStretch ends a stretch, and makes a run of it if the same has come before.
func (f *runFinder) endStretch() {
	l := &f.stretch
	if len(l.steps) >= leastRun && f.request.known.runs.limit > 0 {
		if first := l.steps[0].set; first.seen(mix(l.hash, uint64(len(l.steps)))) {
			f.request.known.runs.add(f.request.version, l.steps)
		}
	}
	*l = stretch{steps: l.steps[:0]}
}

// seen reports whether one of the last two stretches that began with the set had the same hash.
func (s *labelSet) seen(hash uint64) bool {
	last, before := s.began[0].Load(), s.began[1].Load()
	if hash == last || hash == before {
		return true
	}
	s.began[1].Store(last)
	s.began[0].Store(hash)
	return false
}

// take translates a run that begins with the series of an index, if there is one, and the runs that followed it last
// time. It returns how many series these are, 0 if there is none, and the set of the last.
func (f *runFinder) take(s *promwrite.Series, set *labelSet, of *target, index int, near *targetFields) (n int, last *labelSet) {
	list := set.runs.Load()
	if list == nil || s.Rest == "" {
		return 0, nil
	}
	for _, r := range *list {
		rest, ok := f.takeOne(r, s.Rest, of, near)
		if !ok {
			continue
		}
		if before := f.lastRun; before != nil && f.lastRunEnd == index-1 && f.lastRunOf == of {
			before.next.Store(r)
		}
		n = len(r.steps)
		for rest != "" {
			next := r.next.Load()
			if next == nil {
				break
			}
			more, ok := f.takeOne(next, rest, of, near)
			if !ok {
				break
			}
			r, rest = next, more
			n += len(r.steps)
		}
		f.endStretch()
		f.lastRun, f.lastRunEnd, f.lastRunOf = r, index+n-1, of
		f.request.decoder.Skip(n, len(s.Rest)-len(rest))
		return n, r.steps[len(r.steps)-1].set
	}
	return 0, nil
}

// takeOne translates a run, if a message begins with it, and returns what follows.
func (f *runFinder) takeOne(r *run, msg string, of *target, near *targetFields) (rest string, ok bool) {
	if r.version != f.request.version || r.scope != of.key.scope {
		return "", false
	}
	part := r.take(f.request.tree.slabs)
	if part == nil {
		return "", false
	}
	var floats []slab.Float
	if f.request.tree.defers {
		floats = part.Defer()
	} else {
		f.floats = slices.Grow(f.floats[:0], len(r.steps))[:len(r.steps)]
		floats = f.floats
	}
	if f.request.version == promwrite.V1 {
		rest, ok = f.compareV1(r, floats, msg, near)
	} else {
		rest, ok = f.encodings.compare(r, floats, msg, of)
	}
	if !ok {
		r.give(part, true)
		return "", false
	}
	if !f.request.tree.defers {
		part.Fill(floats)
	}
	f.request.tree.place(of, r, part)
	return rest, true
}

// compareV1 compares series of 1.0 with a run, and stores their values. It returns what follows.
func (f *runFinder) compareV1(r *run, floats []slab.Float, msg string, near *targetFields) (rest string, ok bool) {
	first := r.steps[0].set.raw
	joined := f.joined[:0]
	for _, h := range first.holes[:first.n] {
		joined = append(joined, near.fields[h]...)
	}
	joined = append(joined, keptSlack...)
	f.joined = joined
	if near.n != first.n {
		return "", false
	}
	target, samples := borrow.Of(joined), promwrite.SampleReader{Version: promwrite.V1}
	for i, at := 0, 0; ; i++ {
		if i, at, msg = r.labels.follow(i, at, msg, target.String(), &samples, r.steps, floats); i == len(r.steps) {
			return msg, true
		}
		if !r.steps[i].parted {
			return "", false
		}
		var series string
		if series, msg, ok = promwrite.SeriesAt(promwrite.V1, msg); !ok {
			return "", false
		}
		end, ok := r.steps[i].set.raw.comes(series, near)
		if !ok {
			return "", false
		}
		sample, more, ok := samples.Next(series[end:])
		if !ok || more != "" || isStale(sample.Value) {
			return "", false
		}
		floats[i] = slab.Float{Value: sample.Value, At: sample.Timestamp}
	}
}

func isStale(v float64) bool { return math.Float64bits(v) == promwrite.StaleNaN }
