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

// runLearning is what a translator needs to find runs and to learn them.
type runLearning struct {
	stretch stretch
	// The last run, its target, and the index of the series after it.
	lastRun    *run
	lastRunEnd int
	lastRunOf  *target
	// How the series of runs of 2.0 are encoded in the current request.
	said   map[*run]encodedRun
	refs   []encodedStep // memory for all of their steps
	joined []byte        // memory for later calls
	floats []slab.Float  // memory for later calls
	names  map[uint64]string
}

func (l *runLearning) reset() {
	l.stretch = stretch{steps: l.stretch.steps[:0]}
	clear(l.stretch.steps[:cap(l.stretch.steps)])
	l.lastRun, l.lastRunOf = nil, nil
	clear(l.said)
	clear(l.refs)
	if l.refs = l.refs[:0]; cap(l.refs) > maxRetained {
		l.refs = nil
	}
}

// follows reports whether runs are looked for: not if the request has other data about its series or metrics.
func (t *translator) follows() bool {
	return t.tree.again != nil && t.known.shared && t.replicas == nil && len(t.exemplars) == 0 && !t.crowded
}

// learn records a series that was translated by itself.
func (t *translator) learn(s *promwrite.Series, set *labelSet, of *target) {
	f := set.family.Load()
	if set.self == 0 || s.Encoded == "" || len(s.Samples) != 1 || len(s.Histograms) > 0 || !set.attributes.Are() ||
		(set.raw != nil) != (t.version == promwrite.V1) || f == nil || !f.is(s) || !f.metadata.Are() {
		t.endStretch()
		return
	}
	l := &t.stretch
	if l.of != of || len(l.steps) == mostRun || f.metric != l.name && set.self%borders == 0 {
		t.endStretch()
		l.of = of
	}
	l.name = f.metric
	l.steps = append(l.steps, stepOf(set, f, l.steps))
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
func (t *translator) endStretch() {
	l := &t.stretch
	if len(l.steps) >= leastRun && t.known.runs.limit > 0 {
		if first := l.steps[0].set; first.seen(mix(l.hash, uint64(len(l.steps)))) {
			t.known.runs.add(t.version, l.steps)
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

// takeRun translates a run that begins with the series, if there is one, and the runs that followed it last time. It
// returns false if there is none.
func (t *translator) takeRun(s *promwrite.Series, set *labelSet, of *target) bool {
	list := set.runs.Load()
	if list == nil || s.Rest == "" {
		return false
	}
	for _, r := range *list {
		rest, ok := t.takeOne(r, s.Rest, of)
		if !ok {
			continue
		}
		if before := t.lastRun; before != nil && t.lastRunEnd == t.index-1 && t.lastRunOf == of {
			before.next.Store(r)
		}
		n := len(r.steps)
		for rest != "" {
			next := r.next.Load()
			if next == nil {
				break
			}
			more, ok := t.takeOne(next, rest, of)
			if !ok {
				break
			}
			r, rest = next, more
			n += len(r.steps)
		}
		t.endStretch()
		if of.loose { // what comes later of the same series must come after it
			clear(of.numbers)
			of.loose = false
		}
		t.written.Samples += n
		t.index += n - 1
		t.lastRun, t.lastRunEnd, t.lastRunOf = r, t.index, of
		t.decoder.Skip(n, len(s.Rest)-len(rest))
		t.before, t.lastFamily = r.steps[len(r.steps)-1].set, nil
		return true
	}
	return false
}

// takeOne translates a run, if a message begins with it, and returns what follows.
func (t *translator) takeOne(r *run, msg string, of *target) (rest string, ok bool) {
	if r.version != t.version || r.scope != of.key.scope {
		return "", false
	}
	part := r.take(t.tree.slabs)
	if part == nil {
		return "", false
	}
	var floats []slab.Float
	if t.tree.owes {
		floats = part.Owe()
	} else {
		t.floats = slices.Grow(t.floats[:0], len(r.steps))[:len(r.steps)]
		floats = t.floats
	}
	if t.version == promwrite.V1 {
		rest, ok = t.compareV1(r, floats, msg)
	} else {
		rest, ok = t.compareV2(r, floats, msg, of)
	}
	if !ok {
		r.give(part, true)
		return "", false
	}
	if !t.tree.owes {
		part.Fill(floats)
	}
	t.tree.place(of, r, part)
	return rest, true
}

// compareV1 compares series of 1.0 with a run, and stores their values. It returns what follows.
func (t *translator) compareV1(r *run, floats []slab.Float, msg string) (rest string, ok bool) {
	first := r.steps[0].set.raw
	joined := t.joined[:0]
	for _, h := range first.holes[:first.n] {
		joined = append(joined, t.near.fields[h]...)
	}
	joined = append(joined, keptSlack...)
	t.joined = joined
	if t.near.n != first.n {
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
		end, ok := r.steps[i].set.raw.comes(series, &t.near)
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

// compareV2 does the same with series of 2.0.
func (t *translator) compareV2(r *run, floats []slab.Float, msg string, of *target) (rest string, ok bool) {
	before, known := t.encodingOf(r, of)
	first, joined, at := len(t.refs), "", 0
	samples := promwrite.SampleReader{Version: promwrite.V2}
	for i := 0; i < len(r.steps); i++ {
		if i > 0 && before.kept != nil {
			if i, at, msg = before.kept.follow(i, at, msg, joined, &samples, floats); i == len(r.steps) {
				break
			}
		}
		var series string
		if series, msg, ok = promwrite.SeriesAt(promwrite.V2, msg); !ok {
			return "", false
		}
		refs, series, ok := promwrite.RefsAt(series)
		if !ok {
			return "", false
		}
		sample, more, ok := samples.Next(series)
		if !ok || isStale(sample.Value) {
			return "", false
		}
		same := false
		if known {
			var x encodedStep
			if before.kept == nil {
				x = before.steps[i]
			} else {
				x = before.kept.step(i, at)
				at += before.kept.steps[i].length()
			}
			behind := len(x.head) + len(joined)
			same = i > 0 && len(refs) == behind+len(x.tail) && more == x.metadata &&
				refs[:len(x.head)] == x.head && refs[len(x.head):behind] == joined && refs[behind:] == x.tail
		}
		if !same {
			x, own, ok := t.compareRefs(&r.steps[i], refs, more, of)
			if !ok {
				return "", false
			}
			if i == 0 {
				joined = own
			}
			if !known {
				t.refs = append(t.refs, x)
			}
		}
		floats[i] = slab.Float{Value: sample.Value, At: sample.Timestamp, Start: sample.StartTimestamp}
	}
	if !known {
		t.noteEncoding(r, encodedRun{job: of.key.job, isNamed: of.key.instance != "", steps: t.refs[first:]})
	}
	return msg, true
}

// compareRefs compares the references and the metadata of a series with a step and the target. It returns how they are
// encoded, and the reference of the instance.
func (t *translator) compareRefs(st *step, refs, metadata string, of *target) (x encodedStep, instance string, ok bool) {
	labels := st.set.labels
	at, jobs, instances := 0, 0, 0
	x = encodedStep{head: refs, metadata: metadata}
	job, name := "", ""
	for rest := refs; rest != ""; {
		n, key := t.decoder.RefAt(rest)
		if n == 0 {
			return x, "", false
		}
		m, value := t.decoder.RefAt(rest[n:])
		if m == 0 {
			return x, "", false
		}
		switch {
		case at < len(labels) && labels[at].Name == key && labels[at].Value == value: // fast path
			at++
		case key == labelJob:
			job = value
			jobs++
		case key == labelInstance:
			name = value
			instances++
			begin := len(refs) - len(rest) + n
			x.head, instance, x.tail = refs[:begin], refs[begin:begin+m], refs[begin+m:]
		default:
			return x, "", false
		}
		rest = rest[n+m:]
	}
	if at != len(labels) || jobs > 1 || instances > 1 || job != of.key.job || name != of.key.instance {
		return x, "", false
	}
	var s promwrite.Series
	if !t.decoder.MetadataOf(metadata, &s) {
		return x, "", false
	}
	s.Type = knownType(s.Type)
	return x, instance, st.family.is(&s)
}

func isStale(v float64) bool { return math.Float64bits(v) == promwrite.StaleNaN }
