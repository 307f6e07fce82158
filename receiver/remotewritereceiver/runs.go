// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/reuse"
	"github.com/godwit-otel/godwit/internal/slab"
)

// run is series that senders give one after the other again and again, each with one float sample, of whichever target. It is known as a
// whole: what comes is compared with it step by step, and its metrics are kept together to be filled again.
//
// Where a run begins and ends is for its series to say, so that it is the same wherever a request is cut: see stretch.
type run struct {
	of      *runs
	version promwrite.Version
	scope   string
	steps   []step
	metrics int // stretches of one family
	bytes   int // of the run, and
	part    int // of a part

	used atomic.Bool // since it was last looked
	// Guarded by runs.mu.
	gone   bool
	unused int           // looks in a row
	spare  []*reuse.Part // of which nobody has any
	least  int           // of these, the fewest that there were lately
}

// step is a series of a run.
type step struct {
	set    *labelSet
	family *family
	// Of 1.0, what labels are before and behind those of the target, if these are side by side as in the run's first step.
	head, tail string
	parted     bool // they are not
}

// runs are those that are known. Their sets and families are in the tables, too: a run that has one which is not is forgotten.
type runs struct {
	limit int // bytes, of which runs have a quarter and parts the rest

	mu    sync.Mutex
	all   []*run
	known int  // bytes of runs
	spare int  // of parts that nobody has
	out   int  // and of those that requests have
	short bool // some had no room since it was last looked
	looks int
}

// Bytes of memory.
const (
	runSize     = 208
	stepSize    = 56
	partSize    = 320
	metricBytes = 300 // of a part, for each metric
	pointBytes  = 160 // for each point, with what an exporter notes of it
)

const (
	// leastRun is how many series a run has at the least, mostRun at the most.
	leastRun = 4
	mostRun  = 512
	// borders is of how many metrics one begins a run, by the hash of its first series.
	borders = 32
	// maxAlike is how many runs that begin with the same series are known. They are compared one after the other.
	maxAlike = 4
	// A run is forgotten that was not used for so many looks in a row, or for fewer where some runs or label sets have no room: it holds its own.
	maxUnused, fewUnused = 30, 6
	// Half of the parts that were not needed for so many looks go.
	spareLooks = 8
)

// take returns a part of a run, which is the caller's until he gives it. It is nil if there is no room for another.
func (r *run) take(with *slab.Slabs) *reuse.Part {
	if !r.used.Load() {
		r.used.Store(true)
	}
	k := r.of
	k.mu.Lock()
	defer k.mu.Unlock()
	if last := len(r.spare) - 1; last >= 0 {
		p := r.spare[last]
		r.spare[last] = nil
		r.spare = r.spare[:last]
		r.least = min(r.least, last)
		k.spare -= r.part
		k.out += r.part
		return p
	}
	r.least = 0
	if k.known+k.spare+k.out+r.part > k.limit {
		k.short = true
		return nil
	}
	k.out += r.part
	return r.build(with)
}

// give takes a part back, to be used again if it is as it was.
func (r *run) give(p *reuse.Part, again bool) {
	k := r.of
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.out -= r.part; r.gone || !again {
		return
	}
	r.spare = append(r.spare, p)
	k.spare += r.part
}

// build makes a part.
func (r *run) build(with *slab.Slabs) *reuse.Part {
	b := reuse.BuildPart(r.metrics, len(r.steps), with)
	for at := 0; at < len(r.steps); {
		f, n := r.steps[at].family, 1
		for at+n < len(r.steps) && r.steps[at+n].family == f {
			n++
		}
		f.describe(b.Metric(f.shape, n, f.metadata))
		for range n {
			b.Point(r.steps[at].set.attributes)
			at++
		}
	}
	return b.Part()
}

// add makes a run known, if there is room and it is not known already.
func (k *runs) add(version promwrite.Version, steps []step) {
	first, bytes := steps[0].set, runSize+len(steps)*stepSize
	k.mu.Lock()
	defer k.mu.Unlock()
	var alike []*run
	if list := first.runs.Load(); list != nil {
		alike = *list
	}
	for _, o := range alike {
		if o.version == version && slices.Equal(o.steps, steps) {
			return
		}
	}
	if k.known+bytes > k.limit/4 {
		k.short = true
		return
	}
	if len(alike) == maxAlike {
		k.remove(alike[maxAlike-1])
		alike = alike[:maxAlike-1]
	}
	r := &run{of: k, version: version, scope: first.scope, steps: slices.Clone(steps), bytes: bytes}
	for i := range steps {
		if i == 0 || steps[i].family != steps[i-1].family {
			r.metrics++
		}
	}
	r.part = partSize + r.metrics*metricBytes + len(steps)*pointBytes
	r.used.Store(true)
	list := append([]*run{r}, alike...)
	first.runs.Store(&list)
	k.known += r.bytes
	k.all = append(k.all, r)
}

// remove forgets a run, but for the list that it is in. The lock is held.
func (k *runs) remove(r *run) {
	k.all = slices.DeleteFunc(k.all, func(o *run) bool { return o == r })
	k.forget(r)
}

func (k *runs) forget(r *run) {
	r.gone = true
	k.known -= r.bytes
	k.spare -= len(r.spare) * r.part
	r.spare = nil
}

// age forgets runs that do not come any more, sooner where there is little room, and those of which is says that not all of them is known any more.
func (k *runs) age(is func(*run) bool, short bool) {
	k.mu.Lock()
	all := slices.Clone(k.all)
	k.mu.Unlock()
	stays := make([]bool, len(all))
	for i, r := range all {
		stays[i] = is(r)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	most := maxUnused
	if k.short || short {
		most = fewUnused
	}
	k.short = false
	k.looks++
	for i, r := range all {
		if r.gone {
			continue
		}
		if r.unused++; r.used.Swap(false) {
			r.unused = 0
		}
		if !stays[i] || r.unused > most {
			k.forget(r)
			first := r.steps[0].set
			list := slices.DeleteFunc(slices.Clone(*first.runs.Load()), func(o *run) bool { return o == r })
			first.runs.Store(&list)
		} else if k.looks%spareLooks == 0 {
			k.trim(r)
		}
	}
	k.all = slices.DeleteFunc(k.all, func(r *run) bool { return r.gone })
}

// trim lets go of half of the parts that were not needed lately.
func (k *runs) trim(r *run) {
	n := len(r.spare) - (r.least+1)/2
	k.spare -= (len(r.spare) - n) * r.part
	clear(r.spare[n:])
	r.spare = r.spare[:n]
	r.least = n
}

// bytes is how many are in use.
func (k *runs) bytes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known + k.spare
}

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
	// Of a run of 2.0 that was found in the request at hand, how its series were encoded.
	said   map[*run]encodedRun
	refs   []encodedStep // of all these
	joined []byte        // scratch
}

// encodedRun is where the steps of a run are in refs.
type encodedRun struct{ first int }

// encodedStep is the references of a series before and behind that of its instance, and what is behind its sample.
type encodedStep struct{ head, tail, metadata string }

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
	before, known := t.said[r]
	if !known {
		before.first = len(t.refs)
	}
	joined := ""
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
			x := &t.refs[before.first+i]
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
		t.remember(r, before)
	}
	return msg, true
}

// remember notes how a run was encoded, for the next target in the request.
func (t *translator) remember(r *run, e encodedRun) {
	if t.said == nil {
		t.said = map[*run]encodedRun{}
	}
	t.said[r] = e
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
