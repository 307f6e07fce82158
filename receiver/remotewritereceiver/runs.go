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

// run is series that senders send one after the other again and again, each with one float sample, for any target. It
// is recognised as a whole: what comes is compared with it step by step, and its metrics are kept together to be filled
// again.
//
// Its series determine where a run begins and ends, so that it is the same wherever a request is cut: see stretch.
type run struct {
	of      *runs
	version promwrite.Version
	scope   string
	steps   []step
	labels  keptLabels // of steps, in 1.0
	metrics int        // stretches of one family
	bytes   int        // of the run
	part    int        // of a part of it

	used    atomic.Bool              // since it was last aged
	said    atomic.Pointer[encoding] // in 2.0: how its series were encoded
	foreign atomic.Int32             // consecutive requests in which they were encoded otherwise
	next    atomic.Pointer[run]      // the run that followed last time, of the same target
	// Guarded by runs.mu.
	gone   bool
	unused int           // consecutive agings without use
	spare  []*reuse.Part // parts that are not in use
	least  int           // the fewest of these lately
}

// step is a series of a run.
type step struct {
	set    *labelSet
	family *family
	// In 1.0: labels of the target are not adjacent as in the run's first step.
	parted bool
}

// runs are the known runs. Their sets and families are in the tables, too: a run is forgotten when one of them is.
type runs struct {
	limit int // in bytes: one part in runsShare for runs, the rest for parts

	mu    sync.Mutex
	all   []*run
	known int  // bytes of runs
	spare int  // bytes of idle parts
	out   int  // bytes of parts in use
	short bool // some found no room since the last aging
	looks int
}

// Sizes in bytes.
const (
	runSize     = 256
	stepSize    = 24
	partSize    = 320
	metricBytes = 300 // of a part, for each metric
	pointBytes  = 208 // for each point, including what an exporter remembers about it
)

const (
	runsShare = 3
	// leastRun and mostRun limit the series of a run.
	leastRun = 4
	mostRun  = 512
	// borders is the average number of metrics from one that begins a run, by the hash of its first series, to the
	// next.
	borders = 32
	// maxAlike limits the runs that begin with the same series, since they are compared one after the other.
	maxAlike = 4
	// A run is forgotten after this many agings without use, or after fewer if some runs or label sets find no room,
	// since it holds its own.
	maxUnused, fewUnused = 30, 6
	// Half of the parts that were idle for this many agings are dropped.
	spareLooks = 8
)

// take returns a part of a run, which the caller must give back. It returns nil if there is no room for another one.
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

// give takes a part back, to be used again if it is unchanged.
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

// add adds a run, if there is room and it is not known already.
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

// keepEncoding stores how the series of a run are encoded, if there is room.
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

// remove forgets a run, except in its list. The lock is held.
func (k *runs) remove(r *run) {
	k.all = slices.DeleteFunc(k.all, func(o *run) bool { return o == r })
	k.forget(r)
}

func (k *runs) forget(r *run) {
	r.gone = true
	r.next.Store(nil) // else forgotten runs would keep each other in memory
	k.known -= r.bytes
	k.spare -= len(r.spare) * r.part
	r.spare = nil
}

// age forgets runs that no longer come, sooner if there is little room, and those for which is returns false because
// part of them is no longer known.
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

// trim drops half of the parts that were idle lately.
func (k *runs) trim(r *run) {
	n := len(r.spare) - (r.least+1)/2
	k.spare -= (len(r.spare) - n) * r.part
	clear(r.spare[n:])
	r.spare = r.spare[:n]
	r.least = n
}

// bytes returns how many bytes are in use, including parts that requests use.
func (k *runs) bytes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known + k.spare + k.out
}
