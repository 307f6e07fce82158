// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package overflow

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
)

// A flush goes from shard to shard, and locks none of them for longer than a few hundred members or outputs take:
// batches go on meanwhile. What it misses of them goes with the next one.

// restedAtOnce is how many members are put to rest, or outputs summed up, while others wait for their shard.
const restedAtOnce = 512

// summed is the sum of an output's subtotals.
type summed struct {
	Total   amount.Value
	bounds  *amount.Bounds // bounds of total
	stamp   uint64         // of the last point
	points  int            // since the last flush
	Members int
	resting int
	seen    uint32
	lost    int // how many subtotals would have made it infinite
}

// add adds a subtotal, and takes deltas and gauges out of it: they are sent now.
func (s *summed) add(out *Output, p *subtotal, take bool) {
	s.Members += p.Members
	s.resting += p.resting
	s.seen = max(s.seen, p.seen)
	if p.points == 0 && !out.Class.Keeps() {
		return
	}
	total := p.total
	if !take || out.Class.Keeps() {
		total = total.Clone()
	}
	if out.form == amount.ShapeHistogram {
		in := out.Bounds.Load()
		s.Total.Cells = s.bounds.Coarsen(s.Total.Cells, in)
		total.Cells = p.bounds.Coarsen(total.Cells, in)
		s.bounds = in
	}
	points := p.points
	switch {
	case out.Class == amount.ClassGauge && s.points == 0:
		s.Total = total
	case out.Class == amount.ClassGauge && out.gauge != amount.GaugeMean:
		out.gauge.Blend(&s.Total, &total, p.stamp > s.stamp)
	case !s.Total.Add(total):
		if s.lost++; total.Shape == amount.ShapeNumber { // for what is the mean of points
			points = 0
		}
	}
	s.stamp = max(s.stamp, p.stamp)
	s.points += points
	if !take {
		return
	}
	if !out.Class.Keeps() {
		p.total = amount.Value{}
	}
	p.points = 0
}

// SumUp goes through the subtotals of outputs, and takes what is new in them if it is to be sent. The lock of the flush
// is held.
func (o *Overflow) SumUp(order []*Output, take bool) {
	for _, out := range order {
		out.Sum = summed{bounds: out.Bounds.Load()}
	}
	for i := range o.Shards {
		for some := range slices.Chunk(order, restedAtOnce) {
			o.Shards[i].sumUp(some, take)
			runtime.Gosched() // batches may have no other CPU
		}
	}
}

func (sh *overflowShard) sumUp(some []*Output, take bool) {
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	for _, out := range some {
		if p := out.Subtotals[sh.number]; p != nil {
			out.Sum.add(out, p, take)
		}
	}
}

// letRest puts idle members to rest.
func (o *Overflow) letRest(epoch uint32) {
	for i := range o.Shards {
		sh := &o.Shards[i]
		idle := sh.idle(epoch)
		slices.Sort(idle) // sums of floats depend on the order
		for some := range slices.Chunk(idle, restedAtOnce) {
			sh.restSome(some, epoch)
			runtime.Gosched()
		}
	}
}

func (sh *overflowShard) idle(epoch uint32) (idle []uint64) {
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	for fp, m := range sh.Members {
		if m.idle(epoch) {
			idle = append(idle, fp)
		}
	}
	return idle
}

func (m *Member) idle(epoch uint32) bool {
	return !m.rests && moment.Silence(epoch, m.Seen) > moment.IdleEpochs+1
}

func (sh *overflowShard) restSome(some []uint64, epoch uint32) {
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	for _, fp := range some {
		if m := sh.Members[fp]; m != nil && m.idle(epoch) {
			sh.rest(fp, m)
		}
	}
}

// ordered returns a copy of the outputs, in order.
func (o *Overflow) ordered() []*Output {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	return slices.Clone(o.Order)
}

// expire ends outputs that have only resting members, and have been silent. It returns those whose end has to be sent.
// They are forgotten, unless a member may come back to them.
func (o *Overflow) expire(order []*Output, epoch uint32, now pcommon.Timestamp) (ended []*Output) {
	var over []*Output
	for _, out := range order {
		if s := &out.Sum; s.Members == 0 && s.points == 0 && out.pins.Load() == 0 && moment.Silence(epoch, s.seen) > moment.IdleEpochs+1 {
			over = append(over, out)
		}
	}
	kept, rest := o.parted(over, epoch)
	gone := o.abandon(rest, now, func(out *Output) bool {
		return out.pins.Load() == 0 && out.every(func(p *subtotal) bool { return p.quiet() && moment.Silence(epoch, p.seen) > moment.IdleEpochs+1 })
	})
	for _, out := range slices.Concat(kept, gone) {
		if out.Class != amount.ClassDelta && out.sent && !out.over.Swap(true) {
			ended = append(ended, out)
		}
	}
	o.overlookAll()
	o.Mu.Lock()
	defer o.Mu.Unlock()
	o.closeAccounts()
	return ended
}

// Ended outputs stay for their resting members: for OverEpochs epochs, and while they take at most one in OverPart
// bytes of the budget and half of it is free.
const (
	OverEpochs = 6 * moment.IdleEpochs
	OverPart   = 8
)

// parted divides ended outputs into those that stay and those that are forgotten with their members, the ones silent
// for longest. A member that comes back after that, and is admitted, repeats by itself what was added here.
func (o *Overflow) parted(over []*Output, epoch uint32) (kept, rest []*Output) {
	if len(over) == 0 {
		return nil, nil
	}
	active := o.All.active()
	for _, out := range over {
		active -= out.Cost
	}
	room := min(o.Budget/OverPart, o.Budget/2-active)
	slices.SortStableFunc(over, func(a, b *Output) int { return cmp.Compare(b.Sum.seen, a.Sum.seen) })
	for _, out := range over {
		if out.Sum.resting == 0 || out.Cost > room || moment.Silence(epoch, out.Sum.seen) > OverEpochs {
			rest = append(rest, out)
			continue
		}
		room -= out.Cost
		kept = append(kept, out)
	}
	return kept, rest
}

func (o *Overflow) overlookAll() {
	for i := range o.Shards {
		sh := &o.Shards[i]
		sh.Mu.Lock()
		sh.overlook()
		sh.Mu.Unlock()
	}
}

// quiet reports whether a subtotal has no members, and nothing to add.
func (p *subtotal) quiet() bool { return p.Members == 0 && p.points == 0 }

func (out *Output) every(holds func(*subtotal) bool) bool {
	return !slices.ContainsFunc(out.Subtotals, func(p *subtotal) bool { return p != nil && !holds(p) })
}

// abandon forgets the outputs, some at a time, for which over holds when all shards are locked. It returns which they
// were. From then on they are not found, and nothing is added to them.
func (o *Overflow) abandon(all []*Output, now pcommon.Timestamp, over func(*Output) bool) (gone []*Output) {
	for some := range slices.Chunk(all, restedAtOnce) {
		before := len(gone)
		o.Mu.Lock()
		o.LockAll()
		for _, out := range some {
			if !out.gone.Load() && over(out) {
				out.gone.Store(true)
				gone = append(gone, out)
			}
		}
		o.UnlockAll()
		for _, out := range gone[before:] {
			if out.Class.Keeps() && out.begun.Load() {
				o.Begin = now // should it come back, it must have another beginning
			}
			o.shrink(out.account, out.Cost)
			delete(o.Outputs, out.FP)
		}
		if len(gone) > before {
			o.Order = slices.DeleteFunc(o.Order, func(out *Output) bool { return out.gone.Load() })
		}
		o.Mu.Unlock()
	}
	return gone
}

// unbegun forgets outputs made by batches to which nothing was added, once no other batch refers to them.
func (o *Overflow) unbegun(s *Staged) {
	if all := s.release(); len(all) > 0 {
		o.abandon(all, 0, func(out *Output) bool {
			return !out.begun.Load() && out.pins.Load() == 0 && out.every((*subtotal).quiet)
		})
	}
}

// Flush takes what there is to send, by tenant and in pieces that are not too large, and begins a new interval.
func (o *Overflow) Flush(epoch uint32, now time.Time) []Shipment {
	o.flushing.Lock()
	defer o.flushing.Unlock()
	at := pcommon.NewTimestampFromTime(now)
	o.flushed = at
	o.letRest(epoch)
	order := slices.DeleteFunc(o.ordered(), func(out *Output) bool { return !out.begun.Load() })
	o.SumUp(order, true)
	for _, out := range order {
		o.Lost.Add(int64(max(0, out.Sum.lost-out.lost)))
		out.lost = out.Sum.lost
	}
	var all []*Shipment
	open := map[ident.Tenant]*Shipment{}
	shipmentOf := func(t ident.Tenant) *Shipment {
		if open[t] == nil || open[t].Bytes >= ShipmentBytes {
			open[t] = NewShipment(t)
			all = append(all, open[t])
		}
		return open[t]
	}
	for _, out := range o.expire(order, epoch, at) { // before the rest: an output that ends now has nothing else to send
		shipmentOf(out.Tenant).end(out, at)
	}
	for _, out := range order {
		if s := &out.Sum; s.points == 0 && (out.Class == amount.ClassDelta || out.Class == amount.ClassGauge || s.Members == 0) {
			continue
		}
		shipmentOf(out.Tenant).put(out, at)
	}
	shipments := make([]Shipment, len(all))
	for i, s := range all {
		shipments[i] = *s
	}
	return shipments
}

// Restore takes back the sums and last points that could not be sent: they go with the next flush. It returns how many
// it cannot take back, because another output has taken their place.
func (o *Overflow) Restore(s *Shipment) (lost int) {
	o.flushing.Lock()
	defer o.flushing.Unlock()
	for _, out := range s.Ended {
		o.back(out).over.Store(false)
	}
	for i := range s.sent {
		sent := &s.sent[i]
		out := o.back(sent.output)
		if !out.fits(sent.output.kind()) || !o.giveBack(out, sent) {
			lost++
			continue
		}
		if out.Class == amount.ClassDelta {
			out.Start = sent.start
		}
	}
	return lost
}

// back returns the output that is now in an output's place: itself, unless it was idle since and another one came.
func (o *Overflow) back(out *Output) *Output {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	if there := o.Outputs[out.FP]; there != nil {
		return there
	}
	out.gone.Store(false)
	out.account = o.accountOf(out.Rule, out.Tenant.Name) // its own account may be closed
	o.All.Used.Add(out.Cost)
	out.account.Used.Add(out.Cost)
	o.install(out)
	return out
}

// giveBack adds what was taken of an output to it again, in its first subtotal.
func (o *Overflow) giveBack(out *Output, sent *sent) bool {
	sh := &o.Shards[0]
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	p, v := out.subtotal(0), sent.total
	if !out.agree(p, &v, sent.bounds) {
		return false
	}
	out.begun.Store(true)
	switch {
	case out.Class != amount.ClassGauge:
		if !p.total.Add(v) { // together with what has come since
			return false
		}
	case p.points == 0:
		p.total, p.stamp = v, 0 // those that came since are newer
	case out.gauge == amount.GaugeMean:
		p.total.Add(v)
	default:
		out.gauge.Blend(&p.total, &v, false)
	}
	p.points += sent.points
	return true
}
