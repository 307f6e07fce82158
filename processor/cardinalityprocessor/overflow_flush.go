// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"runtime"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// A flush goes from shard to shard, and holds none of them for longer than a few hundred members or outputs take: batches go on
// meanwhile. What it does not see of them goes with the next one.

// restedAtOnce is how many members are let rest, or outputs summed up, while others wait for their shard.
const restedAtOnce = 512

// summed is what the subtotals of an output come to.
type summed struct {
	total   value
	bounds  *bounds // of total
	stamp   uint64  // of the last point
	points  int     // since the last flush
	members int
	pins    int
	seen    uint32
	lost    int // subtotals that would make it infinite
}

// add adds a subtotal, of which deltas and gauges keep nothing: that is sent now.
func (s *summed) add(out *output, p *subtotal, take bool) {
	s.members += p.members
	s.pins += p.pins
	s.seen = max(s.seen, p.seen)
	if p.points == 0 && !out.class.keeps() {
		return
	}
	total := p.total
	if !take || out.class.keeps() {
		total = total.clone()
	}
	if out.form == shapeHistogram {
		in := out.bounds.Load()
		s.total.cells = s.bounds.coarsen(s.total.cells, in)
		total.cells = p.bounds.coarsen(total.cells, in)
		s.bounds = in
	}
	switch {
	case out.class == classGauge && s.points == 0:
		s.total = total
	case out.class == classGauge && out.gauge != gaugeMean:
		out.gauge.blend(&s.total, &total, p.stamp > s.stamp)
	case !s.total.add(total):
		s.lost++
	}
	s.stamp = max(s.stamp, p.stamp)
	s.points += p.points
	if !take {
		return
	}
	if !out.class.keeps() {
		p.total = value{}
	}
	p.points = 0
}

// blend is for gauges that are not added up.
func (g gaugeMode) blend(to, v *value, later bool) {
	if g == gaugeLast && later || g == gaugeMin && v.number() < to.number() || g == gaugeMax && v.number() > to.number() {
		*to = *v
	}
}

// sumUp goes through the subtotals of outputs, and takes what is new of them if it is to be sent. What is a flush's is held.
func (o *overflow) sumUp(order []*output, take bool) {
	for _, out := range order {
		out.sum = summed{bounds: out.bounds.Load()}
	}
	for i := range o.shards {
		for some := range slices.Chunk(order, restedAtOnce) {
			o.sumShard(i, some, take)
			runtime.Gosched() // batches may have no other processor
		}
	}
}

func (o *overflow) sumShard(i int, some []*output, take bool) {
	sh := &o.shards[i]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, out := range some {
		if p := out.subtotals[i]; p != nil {
			out.sum.add(out, p, take)
		}
	}
}

// letRest lets those rest who are idle.
func (o *overflow) letRest(epoch uint32) {
	for i := range o.shards {
		sh := &o.shards[i]
		idle := sh.idle(epoch)
		slices.Sort(idle) // sums of floats depend on the order
		for some := range slices.Chunk(idle, restedAtOnce) {
			o.restSome(sh, some, epoch)
			runtime.Gosched()
		}
	}
}

func (sh *overflowShard) idle(epoch uint32) (idle []uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for fp, m := range sh.members {
		if m.idle(epoch) {
			idle = append(idle, fp)
		}
	}
	return idle
}

func (m *member) idle(epoch uint32) bool { return !m.rests && epoch-m.seen > idleEpochs+1 }

func (o *overflow) restSome(sh *overflowShard, some []uint64, epoch uint32) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, fp := range some {
		if m := sh.members[fp]; m != nil && m.idle(epoch) {
			o.rest(sh, fp, m)
		}
	}
}

// ordered is a copy of what there is.
func (o *overflow) ordered() []*output {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.order)
}

// expire forgets outputs that have no members, and have been silent. It returns those that have to say goodbye.
func (o *overflow) expire(order []*output, epoch uint32, now pcommon.Timestamp) (ended []*output) {
	var over []*output
	for _, out := range order {
		if s := &out.sum; s.members == 0 && s.points == 0 && s.pins == 0 && epoch-s.seen > idleEpochs+1 {
			over = append(over, out)
		}
	}
	for _, out := range o.abandon(over, now, func(out *output) bool {
		return out.every(func(p *subtotal) bool { return p.quiet() && epoch-p.seen > idleEpochs+1 })
	}) {
		if out.class != classDelta && out.sent {
			ended = append(ended, out)
		}
	}
	o.overlookAll()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closeAccounts()
	return ended
}

func (o *overflow) overlookAll() {
	for i := range o.shards {
		sh := &o.shards[i]
		sh.mu.Lock()
		o.overlook(sh)
		sh.mu.Unlock()
	}
}

// quiet says whether nobody has anything for a subtotal, nor it for others.
func (p *subtotal) quiet() bool { return p.members == 0 && p.points == 0 && p.pins == 0 }

func (out *output) every(holds func(*subtotal) bool) bool {
	return !slices.ContainsFunc(out.subtotals, func(p *subtotal) bool { return p != nil && !holds(p) })
}

// abandon forgets outputs, some at a time, of which that holds when all shards are locked. It returns which they were. Nobody finds
// them, or adds anything, from then on.
func (o *overflow) abandon(all []*output, now pcommon.Timestamp, over func(*output) bool) (gone []*output) {
	for some := range slices.Chunk(all, restedAtOnce) {
		before := len(gone)
		o.mu.Lock()
		o.lockAll()
		for _, out := range some {
			if !out.gone.Load() && over(out) {
				out.gone.Store(true)
				gone = append(gone, out)
			}
		}
		o.unlockAll()
		for _, out := range gone[before:] {
			if out.class.keeps() && out.begun.Load() {
				o.begin = now // should it come back, then not with the same beginning
			}
			o.shrink(out.account, out.cost)
			delete(o.outputs, out.fp)
		}
		if len(gone) > before {
			o.order = slices.DeleteFunc(o.order, func(out *output) bool { return out.gone.Load() })
		}
		o.mu.Unlock()
	}
	return gone
}

// unbegun forgets outputs that batches have made to which nothing was added, when no other batch has anything for them.
func (o *overflow) unbegun(s *staged) {
	all := s.orphans
	for i := range s.additions {
		if out := s.additions[i].output; !out.begun.Load() && !slices.Contains(all, out) {
			all = append(all, out)
		}
	}
	if len(all) > 0 {
		o.abandon(all, 0, func(out *output) bool { return !out.begun.Load() && out.every((*subtotal).quiet) })
	}
}

// flush takes what there is to send, by tenant and in pieces that are not too large, and begins a new interval.
func (o *overflow) flush(epoch uint32, now time.Time) []shipment {
	o.flushing.Lock()
	defer o.flushing.Unlock()
	at := pcommon.NewTimestampFromTime(now)
	o.letRest(epoch)
	order := slices.DeleteFunc(o.ordered(), func(out *output) bool { return !out.begun.Load() })
	o.sumUp(order, true)
	for _, out := range order {
		o.lost.Add(int64(max(0, out.sum.lost-out.lost)))
		out.lost = out.sum.lost
	}
	var all []*shipment
	open := map[tenant]*shipment{}
	shipmentOf := func(t tenant) *shipment {
		if open[t] == nil || open[t].bytes >= shipmentBytes {
			open[t] = newShipment(t)
			all = append(all, open[t])
		}
		return open[t]
	}
	for _, out := range o.expire(order, epoch, at) { // before the rest: what ends now has nothing else to say
		shipmentOf(out.tenant).end(out, at)
	}
	for _, out := range order {
		if s := &out.sum; s.points == 0 && (out.class == classDelta || out.class == classGauge || s.members == 0) {
			continue
		}
		shipmentOf(out.tenant).put(out, at)
	}
	shipments := make([]shipment, len(all))
	for i, s := range all {
		shipments[i] = *s
	}
	return shipments
}

// restore takes back the sums and farewells that could not be sent: they go with the next. It returns how many cannot,
// because something else has their place by now.
func (o *overflow) restore(s *shipment) (lost int) {
	o.flushing.Lock()
	defer o.flushing.Unlock()
	for _, out := range s.ended {
		o.back(out)
	}
	for i := range s.sent {
		sent := &s.sent[i]
		out := o.back(sent.output)
		if !out.fits(sent.output.kind()) || !o.giveBack(out, sent) {
			lost++
			continue
		}
		if out.class == classDelta {
			out.start = sent.start
		}
	}
	return lost
}

// back returns the output that has the place of one, which is itself unless it was idle since and another one came.
func (o *overflow) back(out *output) *output {
	o.mu.Lock()
	defer o.mu.Unlock()
	if there := o.outputs[out.fp]; there != nil {
		return there
	}
	out.gone.Store(false)
	o.all.used.Add(out.cost)
	out.account.used.Add(out.cost)
	o.install(out)
	return out
}

// giveBack adds what was taken of an output to it again, as its first subtotal's.
func (o *overflow) giveBack(out *output, sent *sent) bool {
	sh := &o.shards[0]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	p, v := out.subtotal(0), sent.total
	if !out.agree(p, &v, sent.bounds) {
		return false
	}
	out.begun.Store(true)
	switch {
	case out.class != classGauge:
		p.total.add(v)
	case p.points == 0:
		p.total, p.stamp = v, 0 // those that came since are newer
	case out.gauge == gaugeMean:
		p.total.add(v)
	default:
		out.gauge.blend(&p.total, &v, false)
	}
	p.points += sent.points
	return true
}
