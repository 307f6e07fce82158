// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"math"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/reuse"
)

// stretch is series of a target, one after the other, that may become a run.
//
// It ends where the target does, or the request, and before each metric whose first series says so by its hash: one in so many. These are
// the same wherever a request begins and ends. What came between two of them becomes a run when the same comes a second time.
type stretch struct {
	of    *target
	name  string
	steps []step
	hash  uint64
}

// runLearning is what a translator needs to find runs and to learn them.
type runLearning struct {
	stretch stretch
	// How the series of a run of 2.0 are encoded in the request at hand.
	said   map[*run]encodedRun
	refs   []encodedStep // room for those of all these
	joined []byte        // scratch
	names  map[uint64]string
}

func (l *runLearning) reset() {
	l.stretch = stretch{steps: l.stretch.steps[:0]}
	clear(l.stretch.steps[:cap(l.stretch.steps)])
	clear(l.said)
	clear(l.refs)
	if l.refs = l.refs[:0]; cap(l.refs) > maxRetained {
		l.refs = nil
	}
}

// follows says whether runs are to be looked for: not where something else about series, or about metrics of the request, is to be kept in mind.
func (t *translator) follows() bool {
	return t.tree.again != nil && t.known.shared && t.replicas == nil && len(t.exemplars) == 0 && !t.crowded
}

// learn takes note of a series that was translated by itself.
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
		s.head = raw.parts[0]
		if raw.n > 0 {
			s.tail = raw.parts[raw.n]
		}
		first := raw
		if len(before) > 0 {
			first = before[0].set.raw
		}
		s.parted = raw.n != first.n || raw.holes != first.holes || raw.n > 1 && raw.parts[1] != ""
	}
	return s
}

// endStretch ends what was noted, and makes a run of it if the same has come before.
func (t *translator) endStretch() {
	l := &t.stretch
	if len(l.steps) >= leastRun && t.known.runs.limit > 0 {
		if first := l.steps[0].set; first.seen(mix(l.hash, uint64(len(l.steps)))) {
			t.known.runs.add(t.version, l.steps)
		}
	}
	*l = stretch{steps: l.steps[:0]}
}

// seen says whether one of the last two stretches that began with the set had the same hash.
func (s *labelSet) seen(hash uint64) bool {
	last, before := s.began[0].Load(), s.began[1].Load()
	if hash == last || hash == before {
		return true
	}
	s.began[1].Store(last)
	s.began[0].Store(hash)
	return false
}

// takeRun translates all of a run that begins with a series, if one does. It is false if none does.
func (t *translator) takeRun(s *promwrite.Series, set *labelSet, of *target) bool {
	list := set.runs.Load()
	if list == nil || s.Rest == "" {
		return false
	}
	for _, r := range *list {
		if r.version != t.version || r.scope != of.key.scope {
			continue
		}
		part := r.take(t.tree.slabs)
		if part == nil {
			return false
		}
		var rest string
		var ok bool
		if t.version == promwrite.V1 {
			rest, ok = t.compareV1(r, part, s.Rest)
		} else {
			rest, ok = t.compareV2(r, part, s.Rest, of)
		}
		if !ok {
			r.give(part, true)
			continue
		}
		t.endStretch()
		t.tree.place(of, r, part)
		if of.loose { // what comes later of the same series is to stand behind
			clear(of.numbers)
			of.loose = false
		}
		n := len(r.steps)
		t.written.Samples += n
		t.index += n - 1
		t.decoder.Skip(n, len(s.Rest)-len(rest))
		t.before, t.lastFamily = r.steps[n-1].set, nil
		return true
	}
	return false
}

// compareV1 compares series of 1.0 with a run, and fills a part. It returns what follows.
func (t *translator) compareV1(r *run, part *reuse.Part, msg string) (rest string, ok bool) {
	first := r.steps[0].set.raw
	joined := t.joined[:0]
	for _, h := range first.holes[:first.n] {
		joined = append(joined, t.near.fields[h]...)
	}
	t.joined = joined
	if t.near.n != first.n {
		return "", false
	}
	for i := range r.steps {
		st := &r.steps[i]
		var series string
		if series, msg, ok = promwrite.SeriesAt(promwrite.V1, msg); !ok {
			return "", false
		}
		behind := len(st.head) + len(joined)
		end := behind + len(st.tail)
		if st.parted {
			if end, ok = st.set.raw.comes(series, &t.near); !ok {
				return "", false
			}
		} else if len(series) < end || series[:len(st.head)] != st.head || series[len(st.head):behind] != string(joined) || series[behind:end] != st.tail {
			return "", false
		}
		sample, more, ok := promwrite.SampleAt(promwrite.V1, series[end:])
		if !ok || more != "" || isStale(sample.Value) {
			return "", false
		}
		part.Refill(i, sample.Value, uint64(sample.Timestamp)*1e6, 0)
	}
	return msg, true
}

// compareV2 does the same with series of 2.0.
func (t *translator) compareV2(r *run, part *reuse.Part, msg string, of *target) (rest string, ok bool) {
	before, known := t.encodingOf(r, of)
	first, joined := len(t.refs), ""
	for i := range r.steps {
		var series string
		if series, msg, ok = promwrite.SeriesAt(promwrite.V2, msg); !ok {
			return "", false
		}
		refs, series, ok := promwrite.RefsAt(series)
		if !ok {
			return "", false
		}
		sample, more, ok := promwrite.SampleAt(promwrite.V2, series)
		if !ok || isStale(sample.Value) {
			return "", false
		}
		same := false
		if known && i > 0 {
			x := &before.steps[i]
			behind := len(x.head) + len(joined)
			same = len(refs) == behind+len(x.tail) && more == x.metadata &&
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
		part.Refill(i, sample.Value, uint64(sample.Timestamp)*1e6, uint64(sample.StartTimestamp)*1e6)
	}
	if !known {
		t.noteEncoding(r, encodedRun{of.key.job, of.key.instance != "", t.refs[first:]})
	}
	return msg, true
}

// compareRefs compares the references and the metadata of a series with a step, and those of the target. It returns how they are encoded, and the
// reference of the instance.
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
