// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package overflow

import (
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/store"
)

// The way back. A cumulative series that was added to an overflow series cannot simply pass when there is room for it:
// its value includes what was counted in the overflow series. So it restarts: its start is the time of the last value
// that was added, and from then on it reports its growth since. The overflow series and its own series then add up to
// its value.
//
// It asks for a place with its points, once in an epoch. Until it has restarted, it is added up as before. It restarts
// with a flush, after the ledger was written with the value from which it is counted. So a process that is killed at
// any time knows about the restart if anyone else does. docs/design/023 describes the alternatives.

// Own is the point from which a member reports its growth by itself.
type Own struct {
	Base   amount.Value // the value counted in the overflow series
	Bounds *amount.Bounds
	Since  pcommon.Timestamp
	Noted  bool // it is in the ledger; until then the member waits
}

// ownCost is its cost besides the buckets, which move over from the member.
const ownCost = 176

// View is a member as the current batch sees it: with the batch's earlier points.
type View struct {
	Member      *Member
	Limit       *policy.Limit
	Reason      policy.Reason
	Start, Time pcommon.Timestamp
	Last        amount.Value
	Bounds      *amount.Bounds // bounds of Last
	Exact       bool
	Pinned      bool
	Own         *Own
	Noted       bool
}

// When returns the times of the last point.
func (v *View) When() amount.When { return amount.When{Start: v.Start, Time: v.Time} }

// View returns the state of a member.
func (o *Overflow) View(fp uint64) View {
	sh := o.lock(fp)
	defer sh.Mu.Unlock()
	m := sh.Members[fp]
	if m == nil {
		return View{}
	}
	return View{
		Member: m, Limit: m.Limit, Reason: m.Reason, Start: m.Start, Time: m.Time, Last: m.Last.Clone(), Bounds: m.bounds, Exact: m.exact,
		Pinned: m.pins > 0, Own: m.own, Noted: m.own != nil && m.own.Noted,
	}
}

// Grant records that a member was given a place.
func (o *Overflow) Grant(fp uint64) {
	sh := o.lock(fp)
	defer sh.Mu.Unlock()
	if m := sh.Members[fp]; m != nil && m.own == nil && !m.granted {
		m.granted = true
		sh.granted = append(sh.granted, fp)
	}
}

// promoted are members that begin anew, by shard.
type promoted [][]*Member

func (p promoted) Len() (n int) {
	for _, some := range p {
		n += len(some)
	}
	return n
}

// Promote makes members that were granted a place begin anew, as soon as that is saved.
func (o *Overflow) Promote(placed func(fp uint64) bool) promoted {
	all := make(promoted, len(o.Shards))
	for i := range o.Shards {
		all[i] = o.Shards[i].promote(placed)
	}
	return all
}

func (sh *overflowShard) promote(placed func(fp uint64) bool) (all []*Member) {
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	wait := sh.granted[:0]
	for _, fp := range sh.granted {
		m := sh.Members[fp]
		switch {
		case m == nil || !m.granted:
		case m.own != nil || !placed(fp):
			m.granted = false
		case m.rests || !m.exact || m.pins > 0 || sh.memory.All.Used.Load()+sh.memory.All.Staged.Load()+ownCost > sh.memory.Budget || !sh.memory.grow(m.Output.account, ownCost):
			wait = append(wait, fp)
		default:
			m.granted = false
			m.own = &Own{Base: m.Last, Bounds: m.bounds, Since: m.Time}
			m.Last = m.Last.Scalar()
			m.Cost += ownCost
			sh.owning++
			all = append(all, m)
		}
	}
	clear(sh.granted[len(wait):])
	sh.granted = wait
	return all
}

// Confirm lets them begin, or continue as before if that could not be saved.
func (o *Overflow) Confirm(all promoted, noted bool) {
	for i, some := range all {
		if len(some) > 0 {
			o.Shards[i].confirm(some, noted)
		}
	}
}

func (sh *overflowShard) confirm(some []*Member, noted bool) {
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	for _, m := range some {
		if m.own == nil || m.gone {
			continue
		}
		if noted {
			m.own.Noted = true
			continue
		}
		m.Last = m.own.Base.Clone() // batches may be reading it
		sh.disown(m)
		if m.rests {
			sh.restMore(m.Output.account, -ownCost)
		}
		m.Cost -= ownCost
		sh.memory.shrink(m.Output.account, ownCost)
	}
}

// disown ends a member's own series.
func (sh *overflowShard) disown(m *Member) {
	if m.own != nil && !m.rests {
		sh.owning--
	}
	m.own = nil
}

// StageOwn stages a point of a member's own series. With demoted it was the last one.
func (o *Overflow) StageOwn(s *Staged, v *View, add *Addition, said *amount.Bucketed) {
	sh := o.lock(add.FP)
	defer sh.Mu.Unlock()
	add.member, add.output, add.limit, add.reason, add.passes = v.Member, v.Member.Output, v.Limit, v.Reason, true
	s.keep(add.output)
	s.append(add, said)
	add.member.pins++
}

// own settles such a point.
func (x *settling) own() {
	m, out := x.Addition.member, x.output
	switch {
	case m.gone || m.own == nil: // another batch came first
		return
	case x.NoValue:
		if !m.rests && (x.Time == 0 || x.Time >= m.Time) {
			x.shard.rest(x.FP, m)
		}
		return
	case x.Time <= m.Time:
		return
	}
	if m.rests {
		x.shard.wake(m)
	}
	v, of := x.value(x.Addition, out.form)
	m.Time, m.Seen = min(x.Time, x.latest), x.Epoch
	if !x.Demoted {
		m.Last.Keep(&v)
		m.own = x.Own
		return
	}
	x.shard.disown(m)
	exact, p := of, out.subtotal(x.shard.number)
	growth := m.growth(&v)
	if !out.agree(p, &v, of) || !x.afford(m, out.account, growth) { // then only its growth from the next value on
		x.shard.forget(x.FP, m)
		return
	}
	m.Last.Keep(&v)
	m.bounds, m.Cost, m.exact = p.bounds, m.Cost+growth, exact == p.bounds
}

// appendOwn appends a member's own series to the ledger.
func (m *Member) appendOwn(dst []byte, fp uint64) []byte {
	dst = store.AppendTimes(binary.LittleEndian.AppendUint64(dst, fp), m.own.Since)
	dst = amount.AppendBounds(dst, m.own.Bounds)
	return m.own.Base.Append(append(dst, byte(m.own.Base.Shape)))
}

// restoreOwn reads those series. A ledger of a version that did not have them ends before.
func (o *Overflow) restoreOwn(r *store.Reader) error {
	if r.Err != nil || len(r.Rest) == 0 {
		return r.Err
	}
	for range r.Count(2*8 + 2 + amount.ValueFields) {
		fp, from := r.Word(), &Own{Since: r.Time(), Noted: true}
		from.Bounds = amount.ReadBounds(r)
		as := amount.Shape(r.Byte())
		from.Base = amount.ReadValue(r)
		from.Base.Shape = as
		sh := &o.Shards[o.shardOf(fp)]
		m := sh.Members[fp]
		if r.Err != nil || m == nil || m.own != nil || as > amount.ShapeSummary ||
			len(from.Base.Cells) > 0 && (from.Bounds == nil || len(from.Base.Cells) != len(from.Bounds.Upper)+1) {
			return store.ErrDamaged
		}
		m.own = from
		sh.owning++
		cost := ownCost + costOf(&from.Base) - MemberCost
		m.Cost += cost
		o.All.Used.Add(cost)
		m.Output.account.Used.Add(cost)
	}
	return r.Err
}
