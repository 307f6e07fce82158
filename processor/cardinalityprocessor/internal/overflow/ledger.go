// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package overflow

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/store"
)

// The ledger is the saved state of the overflow: cumulative outputs with their totals, and members with their last
// values. A restart continues from it, so that no increment counts twice or not at all.
//
// It is written before a flush is sent: whatever the next consumer has seen is in it, even if the process is killed.
// What a killed process added up since then has not been seen by anyone, and is contained in the next values of
// cumulative inputs. If the process ends properly, the ledger is closed, and includes the deltas that could not be
// sent:
//
//	magic | closed | certain | outputs | rule names | members | those with series of their own | beginnings in the future | CRC-32

// SealedLedger visits one shard after the other: at any time, the members of a shard account for what its subtotals of
// the outputs contain. Only bounds must not change meanwhile; if they do, it starts again, and at the third attempt it
// locks all shards.
func (o *Overflow) SealedLedger(closed bool) []byte {
	o.flushing.Lock()
	defer o.flushing.Unlock()
	for range 2 {
		if l := o.ledger(closed); l.whole() {
			return o.seal(l, closed)
		}
	}
	order := o.ordered()
	o.LockAll()
	defer o.UnlockAll()
	l := newLedger(order, closed)
	for i := range o.Shards {
		l.add(&o.Shards[i], o.flushed)
	}
	return o.seal(l, closed)
}

// ledger collects the state of the overflow before it is written.
type ledger struct {
	outputs []*Output        // deltas come last
	bounds  []*amount.Bounds // bounds of the outputs when the ledger was begun
	index   map[*Output]uint64
	names   []string // of rules
	rules   map[string]uint64
	certain pcommon.Timestamp // the latest of all subtotals
	members []byte
	n       uint64
	own     []byte
	owning  uint64
	ahead   []pcommon.Timestamp // beginnings in the future of members that were forgotten
}

// newLedger begins a ledger of the outputs that were added to and whose total is kept, or that are left for the next
// process to send.
func newLedger(order []*Output, closed bool) *ledger {
	l := &ledger{index: map[*Output]uint64{}, rules: map[string]uint64{}}
	for _, deltas := range []bool{false, closed} {
		for _, out := range order {
			if out.begun.Load() && (!deltas && out.Class.Keeps() || deltas && out.Class == amount.ClassDelta) {
				out.Sum = summed{bounds: out.Bounds.Load()}
				l.index[out] = uint64(len(l.outputs))
				l.outputs, l.bounds = append(l.outputs, out), append(l.bounds, out.Sum.bounds)
			}
		}
		if !closed {
			break
		}
	}
	return l
}

func (o *Overflow) ledger(closed bool) *ledger {
	l := newLedger(o.ordered(), closed)
	for i := range o.Shards {
		l.note(&o.Shards[i], o.flushed)
	}
	return l
}

// note adds a shard.
func (l *ledger) note(sh *overflowShard, flushed pcommon.Timestamp) {
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	l.add(sh, flushed)
}

// add is note for a shard whose lock is held.
func (l *ledger) add(sh *overflowShard, flushed pcommon.Timestamp) {
	for _, out := range l.outputs {
		if p := out.Subtotals[sh.number]; p != nil {
			out.Sum.add(out, p, false)
			l.certain = max(l.certain, p.certain)
			l.doubt(p.ahead, flushed)
		}
	}
	for fp, m := range sh.Members {
		at, ok := l.index[m.Output]
		if !ok { // it came meanwhile
			continue
		}
		rule, ok := l.rules[m.Limit.Name]
		if !ok {
			rule = uint64(len(l.names))
			l.rules[m.Limit.Name] = rule
			l.names = append(l.names, m.Limit.Name)
		}
		l.n++
		l.members = binary.AppendUvarint(binary.LittleEndian.AppendUint64(l.members, fp), at)
		l.members = append(binary.AppendUvarint(l.members, rule), byte(m.Reason))
		l.members = store.AppendTimes(l.members, m.Start, m.Time)
		last := m.Last
		last.Cells = m.bounds.Coarsen(last.Cells, m.Output.Sum.bounds)
		l.members = last.Append(l.members)
		if m.own != nil {
			l.owning++
			l.own = m.appendOwn(l.own, fp)
		}
	}
}

// doubt notes beginnings of members that were forgotten: those that are not in the future any more are like all others.
func (l *ledger) doubt(all []pcommon.Timestamp, now pcommon.Timestamp) {
	for _, start := range all {
		if start < now {
			l.certain = max(l.certain, start+1)
		} else {
			l.ahead = append(l.ahead, start)
		}
	}
}

// whole reports whether the bounds of all outputs are what they were when the ledger was begun.
func (l *ledger) whole() bool {
	for i, out := range l.outputs {
		if out.Bounds.Load() != l.bounds[i] {
			return false
		}
	}
	return true
}

// seal writes the ledger.
func (o *Overflow) seal(l *ledger, closed bool) []byte {
	l.doubt(slices.Collect(maps.Keys(o.ahead)), o.flushed)
	dst := store.AppendFlags([]byte(store.Magic), closed)
	dst = store.AppendTimes(dst, max(o.Certain, min(l.certain, o.flushed))) // a beginning may lie in the future
	outputs, encoded := uint64(0), []byte(nil)
	for _, out := range l.outputs {
		if !out.Class.Keeps() && out.Sum.points == 0 { // and there are no members
			continue
		}
		outputs++
		encoded = out.append(encoded)
	}
	dst = append(binary.AppendUvarint(dst, outputs), encoded...)
	dst = binary.AppendUvarint(dst, uint64(len(l.names)))
	for _, name := range l.names {
		dst = store.AppendString(dst, name)
	}
	dst = append(binary.AppendUvarint(dst, l.n), l.members...)
	dst = append(binary.AppendUvarint(dst, l.owning), l.own...)
	slices.Sort(l.ahead)
	l.ahead = slices.Compact(l.ahead)
	dst = store.AppendTimes(binary.AppendUvarint(dst, uint64(len(l.ahead))), l.ahead...)
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst))
}

// RestoreLedger continues where another process ended. If that was killed, series that began before this process may
// have been counted. It is for a processor that has not started.
func (o *Overflow) RestoreLedger(saved []byte, epoch uint32) error {
	o.Certain = o.Begin
	r, err := store.NewReader(saved)
	if err != nil {
		return err
	}
	closed, certain := r.Byte() == 1, r.Time()
	outputs := make([]*Output, r.Count(minOutput))
	for i := range outputs {
		out := readOutput(r)
		if out == nil || o.Outputs[out.FP] != nil {
			return store.ErrDamaged
		}
		o.reinstall(out, epoch)
		outputs[i] = out
	}
	limits := make([]*policy.Limit, r.Count(1))
	for i := range limits {
		limits[i] = &policy.Limit{Name: r.String()}
	}
	for range r.Count(minMember) {
		fp := r.Word()
		at, rule, why := r.Uvarint(), r.Uvarint(), policy.Reason(r.Byte())
		m := &Member{Reason: why, Seen: epoch, Start: r.Time(), Time: r.Time(), Last: amount.ReadValue(r)}
		shard := o.shardOf(fp)
		sh := &o.Shards[shard]
		if r.Err != nil || at >= uint64(len(outputs)) || rule >= uint64(len(limits)) || why >= policy.Reasons ||
			sh.Members[fp] != nil || !outputs[at].keeps(m.Last) {
			return store.ErrDamaged
		}
		m.Output, m.Limit, m.Cost = outputs[at], limits[rule], costOf(&m.Last)
		m.bounds, m.Last.Shape = m.Output.Bounds.Load(), m.Output.form
		m.Output.subtotal(shard).Members++
		sh.admit(fp, m)
		o.All.Used.Add(m.Cost)
		m.Output.account.Used.Add(m.Cost)
		m.exact = m.Last.Shape != amount.ShapeHistogram || m.bounds == nil // otherwise its value is unknown until its next point
	}
	if err := o.restoreOwn(r); err != nil {
		return err
	}
	if r.Err == nil && len(r.Rest) > 0 { // the ledger of an earlier version ends before
		o.ahead = make(map[pcommon.Timestamp]bool)
		for range r.Count(8) {
			o.ahead[r.Time()] = true
		}
	}
	o.restRestored()
	if closed && r.Err == nil {
		o.Certain = certain // an earlier process may have been killed
	}
	return r.Err
}

// restRestored puts members to rest whose output is over. The silence of all others is counted from now on.
func (o *Overflow) restRestored() {
	for i := range o.Shards {
		sh := &o.Shards[i]
		for _, fp := range slices.Sorted(maps.Keys(sh.Members)) {
			if m := sh.Members[fp]; m != nil && m.Output.over.Load() {
				sh.rest(fp, m)
			}
		}
	}
}

// Doubt is called when it is not fully known which series were admitted: those that began before this process may have
// been counted.
func (o *Overflow) Doubt() { o.Certain = o.Begin }

// Restored returns the members that were saved, and whether they have a series of their own. There are no others yet.
func (o *Overflow) Restored() map[uint64]bool {
	all := map[uint64]bool{}
	for i := range o.Shards {
		for fp, m := range o.Shards[i].Members {
			all[fp] = m.own != nil
		}
	}
	return all
}

// reinstall puts a saved output in its place. All of its total goes to its first subtotal.
func (o *Overflow) reinstall(out *Output, epoch uint32) {
	out.Subtotals = make([]*subtotal, len(o.Shards))
	out.Cost += subtotalSize * int64(len(o.Shards))
	p := out.subtotal(0)
	p.total, p.points, p.seen = out.Sum.Total, max(out.Sum.points, 1), epoch // it is not known whether it was sent
	if out.over.Load() {
		p.points = 0
	}
	out.since = out.Start
	out.account = o.accountOf(out.Rule, out.Tenant.Name)
	out.begun.Store(true)
	out.summed.Store(p.total.HasSum)
	o.All.Used.Add(out.Cost)
	out.account.Used.Add(out.Cost)
	o.install(out)
}

// The least sizes of outputs and members.
const (
	minOutput = 3 + 4*8 + 3 + amount.ValueFields
	minMember = 8 + 3 + 2*8 + amount.ValueFields
)

func (out *Output) append(dst []byte) []byte {
	dst = store.AppendString(ident.AppendTenant(dst, out.Tenant), out.Rule)
	for _, word := range []uint64{out.FP, out.Keys.Scope, out.Keys.Metric} {
		dst = binary.LittleEndian.AppendUint64(dst, word)
	}
	dst = store.AppendTimes(dst, out.Start)
	dst = binary.AppendUvarint(store.AppendFlags(dst, out.sent, out.over.Load()), uint64(out.Sum.points))
	if out.form == amount.ShapeHistogram {
		amount.SetBounds(out.Metric, out.Sum.bounds)
	}
	var to pmetric.ProtoMarshaler
	data, _ := to.MarshalMetrics(out.Data) // it never fails
	dst = append(binary.AppendUvarint(dst, uint64(len(data))), data...)
	return out.Sum.Total.Append(dst)
}

// readOutput reads an output. It returns nil if there is no valid one.
func readOutput(r *store.Reader) *Output {
	out := &Output{Tenant: ident.ReadTenant(r), Rule: r.String()}
	out.FP, out.Keys.Scope, out.Keys.Metric = r.Word(), r.Word(), r.Word()
	out.Start = r.Time()
	flags := r.Byte()
	out.sent, out.Sum.points = flags&1 != 0, int(min(r.Uvarint(), math.MaxInt32))
	out.over.Store(flags&2 != 0)
	data := r.Bytes(r.Count(1))
	total := amount.ReadValue(r)
	if r.Err != nil {
		return nil
	}
	if out.Data, out.Metric = amount.OnlyPoint(data); out.Metric == (pmetric.Metric{}) {
		return nil
	}
	out.Class = amount.ClassOf(out.Metric)
	if out.Metric.Type() == pmetric.MetricTypeHistogram {
		if upper := out.Metric.Histogram().DataPoints().At(0).ExplicitBounds().AsRaw(); len(upper) > 0 {
			out.Bounds.Store(&amount.Bounds{Upper: upper})
		}
	}
	out.form = amount.ShapeOf(out.Metric)
	if total.Shape = out.form; out.Class == amount.ClassGauge || !out.keeps(total) {
		return nil
	}
	out.Sum.Total = total
	out.Cost = out.Weight(len(data))
	return out
}

// keeps reports whether a value may be added to the output's total.
func (out *Output) keeps(v amount.Value) bool {
	in := out.Bounds.Load()
	return len(v.Cells) == 0 || in != nil && len(v.Cells) == len(in.Upper)+1
}
