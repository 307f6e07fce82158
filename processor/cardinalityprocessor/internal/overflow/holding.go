// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package overflow

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// A member mostly remains one, and so do the other series of its metric. So members are looked up some at a time, and
// are pinned until their points are staged: a shard is locked once for all of them.

// heldAtOnce is how many points of a metric are looked up together at most. The number begins with one, and doubles as
// long as each of them is asked about.
const heldAtOnce = 64

// holding covers the points of a metric whose members were looked up.
type holding struct {
	begin, asked int // indices of points of the metric: the first, and the one after the last that was asked about
	holds        []hold
	using        *hold // the entry of the current point, if that may be staged with it
}

// hold is the result of looking up the member of a point.
type hold struct {
	fp     uint64
	member *Member // nil if there is none
	limit  *policy.Limit
	start  pcommon.Timestamp
	time   pcommon.Timestamp
	cost   int64
	tried  uint32
	reason policy.Reason
	before uint8 // index plus one of the previous one in the same shard
	pinned bool  // the member stays
	own    bool
	asks   bool // it asks for a place, if it has not in this epoch
}

// Held is the last verdict on a series that is a member of an output.
type Held struct {
	Limit  *policy.Limit // nil if it is not a member
	Reason policy.Reason
	Output *Output
	Anew   bool // it was a member, with another beginning
}

// Held returns the last verdict on a series whose counting cannot simply move elsewhere, because it would count twice.
// It reports whether the series should ask for a place, and whether it had one and reports its growth by itself. The
// series is that of the i-th point of the current metric, which has the fingerprints fps. Unhold forgets what Held has
// looked up about the others.
func (o *Overflow) Held(s *Staged, fps []uint64, i int, w amount.When, epoch uint32, now pcommon.Timestamp) (v Held, asks, owns bool) {
	all := &s.holding
	all.using = nil
	if i < all.begin || i >= all.begin+len(all.holds) {
		if o.Shards[o.shardOf(fps[i])].members.Load() == 0 { // fast path: where everything is dropped, there are no members
			return Held{}, false, false
		}
		n := 1
		if end := all.begin + len(all.holds); i == end && all.asked == end {
			n = max(n, min(2*len(all.holds), heldAtOnce))
		}
		o.Unhold(s)
		o.hold(s, fps, i, min(n, len(fps)-i))
	}
	all.asked = i + 1
	h := &all.holds[i-all.begin]
	if h.member == nil || !w.NoValue && w.Anew(amount.When{Start: h.start, Time: h.time}, now) { // the end may come without a beginning
		return Held{Anew: h.member != nil}, false, false
	}
	v = Held{Limit: h.limit, Reason: h.reason, Output: h.member.Output}
	switch {
	case h.own:
		return v, true, true
	case h.asks && h.tried != epoch+1 && !w.NoValue && o.tries(h, epoch):
		return v, true, false
	case h.pinned:
		all.using = h
	}
	return v, false, false
}

// tries records that a member asks for a place, and reports whether this is the first time in the epoch.
func (o *Overflow) tries(h *hold, epoch uint32) bool {
	sh := o.lock(h.fp)
	defer sh.Mu.Unlock()
	if h.member.tried == epoch+1 { // with an earlier point
		return false
	}
	h.member.tried = epoch + 1
	return true
}

// hold looks up the members of some points.
func (o *Overflow) hold(s *Staged, fps []uint64, begin, n int) {
	all := &s.holding
	all.begin = begin
	var last [1 << maxOverflowShardBits]uint8 // for each shard, the index plus one of its last point
	for i, fp := range fps[begin : begin+n] {
		shard := o.shardOf(fp)
		all.holds = append(all.holds, hold{fp: fp, before: last[shard]})
		last[shard] = uint8(i + 1)
	}
	for left, wait := true, false; left; wait = true { // only wait for a lock when there is nothing else to do
		left = false
		for i := range o.Shards {
			if last[i] == 0 {
				continue
			}
			if o.Shards[i].hold(s, last[i], wait) {
				last[i] = 0
			} else {
				left = true
			}
		}
	}
}

// hold looks up those of the shard, from the last one back, unless it is locked and wait is false.
func (sh *overflowShard) hold(s *Staged, last uint8, wait bool) (done bool) {
	if wait {
		sh.Mu.Lock()
	} else if !sh.Mu.TryLock() {
		return false
	}
	defer sh.Mu.Unlock()
	for at := last; at > 0; {
		h := &s.holding.holds[at-1]
		at = h.before
		if m := sh.Members[h.fp]; m != nil {
			h.look(s, m)
		}
	}
	return true
}

// look fills in the state of a member, whose shard is locked.
func (h *hold) look(s *Staged, m *Member) {
	h.member, h.limit, h.reason, h.start, h.time, h.cost = m, m.Limit, m.Reason, m.Start, m.Time, m.Cost
	h.own, h.asks, h.tried = m.own != nil, m.exact && m.Time != 0, m.tried
	if !h.own && !m.Output.gone.Load() {
		h.pinned = true
		m.pins++
		s.keep(m.Output)
	}
}

// Unhold unpins members whose points were not staged, and forgets what was looked up.
func (o *Overflow) Unhold(s *Staged) {
	all := &s.holding
	for i := range all.holds {
		if h := &all.holds[i]; h.pinned {
			o.unpin(h)
		}
	}
	clear(all.holds)
	all.holds, all.using = all.holds[:0], nil
}

func (o *Overflow) unpin(h *hold) {
	sh := o.lock(h.fp)
	defer sh.Mu.Unlock()
	h.member.pins--
}
