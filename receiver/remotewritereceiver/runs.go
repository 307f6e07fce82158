// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
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
	labels  keptLabels // of steps, of 1.0
	metrics int        // stretches of one family
	bytes   int        // of the run, and
	part    int        // of a part

	used    atomic.Bool              // since it was last looked
	said    atomic.Pointer[encoding] // of 2.0: how its series were encoded
	foreign atomic.Int32             // in how many requests in a row that was not how they are
	next    atomic.Pointer[run]      // which came behind it last time, of the same target
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
	// Of 1.0: labels of the target are not side by side as in the run's first step.
	parted bool
}

// runs are those that are known. Their sets and families are in the tables, too: a run that has one which is not is forgotten.
type runs struct {
	limit int // bytes, of which runs have one part in runsShare at most, and parts the rest

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
	runSize     = 256
	stepSize    = 24
	partSize    = 320
	metricBytes = 300 // of a part, for each metric
	pointBytes  = 208 // for each point, with what an exporter notes of it
)

const (
	runsShare = 3
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

// take returns a part of a run, which is the caller's until he gives it. It returns nil if there is no room for another.
func (r *run) take(with *slab.Slabs) *reuse.Part {
	if !r.used.Load() {
		r.used.Store(true)
	}
	k := r.of
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.gone {
		return nil
	}
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
	var labels keptLabels
	if version == promwrite.V1 && k.known+bytes <= k.limit/runsShare {
		labels = keepLabels(steps)
		bytes += labels.bytes()
	}
	if k.known+bytes > k.limit/runsShare {
		k.short = true
		return
	}
	if len(alike) == maxAlike {
		k.remove(alike[maxAlike-1])
		alike = alike[:maxAlike-1]
	}
	r := &run{of: k, version: version, scope: first.scope, steps: slices.Clone(steps), labels: labels, bytes: bytes}
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

// keepEncoding records how the series of a run are encoded, if there is room.
func (k *runs) keepEncoding(r *run, e *encoding) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	more := e.bytes
	if last := r.said.Load(); last != nil {
		more -= last.bytes
	}
	if r.gone || k.known+more > k.limit/runsShare {
		return false
	}
	r.bytes += more
	k.known += more
	r.said.Store(e)
	return true
}

// remove forgets a run, but for the list that it is in. The lock is held.
func (k *runs) remove(r *run) {
	k.all = slices.DeleteFunc(k.all, func(o *run) bool { return o == r })
	k.forget(r)
}

func (k *runs) forget(r *run) {
	r.gone = true
	r.next.Store(nil) // else what is gone would keep what is gone
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

// trim drops half of the parts that were not needed lately.
func (k *runs) trim(r *run) {
	n := len(r.spare) - (r.least+1)/2
	k.spare -= (len(r.spare) - n) * r.part
	clear(r.spare[n:])
	r.spare = r.spare[:n]
	r.least = n
}

// bytes is how many are in use, those of parts that requests have included.
func (k *runs) bytes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known + k.spare + k.out
}
