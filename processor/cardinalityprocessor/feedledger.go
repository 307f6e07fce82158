// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// What is aggregated is saved as the overflow is: before a flush is sent, so that of what anybody has seen nothing is
// forgotten, not even by a process that is killed. What such a one was told since then nobody has seen, and what counts up
// says it again. Deltas that are about to be sent are not in it: they might be sent twice. All of it is written at once, one
// value with what is made, and one with the feeders of each shard:
//
//	magic | closed | stamp | parts | retired | states | aggregates | CRC-32
//	magic | stamp | feeders | CRC-32
const snapshotAggregates = "aggregates"

func feedersKey(part int) string { return snapshotAggregates + strconv.Itoa(part) }

// savedFeeders are those of a shard as they were when it was drained.
type savedFeeders struct {
	keys       []uint64
	feeders    []feeder
	of         []uint32 // numbers of aggregates
	histograms []bucketed
}

// copy copies them, less those of deltas: nothing needs to be known of these. The shard's lock is held.
func (c *savedFeeders) copy(s *feederShard) {
	*c = savedFeeders{keys: c.keys[:0], feeders: c.feeders[:0], of: c.of[:0], histograms: c.histograms[:0]}
	slots := s.slots.Load()
	for at := range slots.heads {
		key := slots.heads[at].key.Load()
		if key == 0 {
			continue
		}
		f := slots.feeders[at]
		g := s.portions[f.portion].of
		if g.class == classDelta || f.flags&feederBegun == 0 {
			continue
		}
		if g.shape() != shapeNumber {
			h := &s.histograms[f.bits]
			f.bits = uint64(len(c.histograms))
			c.histograms = append(c.histograms, bucketed{h.last, h.bounds})
		}
		c.keys, c.feeders, c.of = append(c.keys, key), append(c.feeders, f), append(c.of, g.number)
	}
}

// saveFeeders writes what the shards were drained for. With something due the process goes on.
func (p *cardinalityProcessor) saveFeeders(ctx context.Context, due map[*aggregationState]pcommon.Timestamp) error {
	a := p.aggregator
	stamp := uint64(p.now().UnixNano())
	known := map[uint32]*aggregate{}
	values := map[string][]byte{snapshotAggregates: a.appendAggregates(nil, stamp, due, known)}
	for i := range a.saved {
		values[feedersKey(i)] = a.saved[i].append(nil, stamp, known)
	}
	if err := p.storage.setAll(ctx, values); err != nil {
		return fmt.Errorf("cannot save the aggregates: %w", err)
	}
	return nil
}

// appendAggregates notes which aggregates it has, by their numbers.
func (a *aggregator) appendAggregates(
	dst []byte, stamp uint64, due map[*aggregationState]pcommon.Timestamp, known map[uint32]*aggregate,
) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	begin := len(dst)
	dst = appendFlags(append(dst, snapshotMagic...), due == nil)
	dst = binary.LittleEndian.AppendUint64(dst, stamp)
	dst = binary.AppendUvarint(dst, uint64(len(a.shards)))
	dst = appendTimes(dst, a.retired)
	dst = binary.AppendUvarint(dst, uint64(len(a.states)))
	index := map[*aggregationState]uint64{}
	for i, s := range a.states {
		index[s] = uint64(i)
		dst = appendString(dst, s.name)
		dst = binary.AppendUvarint(binary.LittleEndian.AppendUint64(dst, s.identity), uint64(len(s.before)))
		for _, key := range append([]uint64{s.key}, s.before...) {
			dst = binary.LittleEndian.AppendUint64(dst, key)
		}
		flushed := s.flushed
		if at := due[s]; at != 0 {
			flushed = at
		}
		dst = appendTimes(dst, s.since, flushed)
		dst = binary.AppendUvarint(appendFlags(dst, s.gone, s.rule.keepInput, len(s.rule.outputs) == 1), uint64(s.interval))
	}
	var all []*aggregate
	for _, g := range a.order {
		if g.feeders > 0 || g.points > 0 || g.sent {
			all = append(all, g)
			known[g.number] = g
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(all)))
	for _, g := range all {
		dst = g.append(dst, index[g.state], due[g.state] != 0)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[begin:]))
}

// append appends an aggregate, as it will be when what is due was sent.
func (g *aggregate) append(dst []byte, state uint64, due bool) []byte {
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, state), uint64(g.number))
	dst = appendTenant(dst, g.tenant)
	for _, word := range []uint64{g.identity, g.keys.scope, g.keys.metric} {
		dst = binary.LittleEndian.AppendUint64(dst, word)
	}
	dst = appendTimes(dst, g.start)
	points, total := uint64(g.points), g.total
	speaks, _ := g.says()
	if due && g.class == classDelta {
		points, total = 0, bucketed{bounds: total.bounds}
	}
	dst = binary.AppendUvarint(appendFlags(dst, g.sent || due && speaks, g.spoke || due && speaks), points)
	dst = append(binary.AppendUvarint(dst, uint64(len(g.outputs))), operationBytes(g.outputs)...)
	var to pmetric.ProtoMarshaler
	data, _ := to.MarshalMetrics(g.data) // it never fails
	dst = append(binary.AppendUvarint(dst, uint64(len(data))), data...)
	dst = appendBounds(dst, total.bounds)
	return total.append(dst)
}

func operationBytes(all []operation) (raw []byte) {
	for _, of := range all {
		raw = append(raw, byte(of))
	}
	return raw
}

func appendBounds(dst []byte, b *bounds) []byte {
	var upper []float64
	if b != nil {
		upper = b.upper
	}
	dst = binary.AppendUvarint(dst, uint64(len(upper)))
	for _, at := range upper {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(at))
	}
	return dst
}

// append appends the feeders, with what is no number in the bounds that their aggregates have.
func (c *savedFeeders) append(dst []byte, stamp uint64, known map[uint32]*aggregate) []byte {
	begin := len(dst)
	dst = binary.LittleEndian.AppendUint64(append(dst, snapshotMagic...), stamp)
	n := 0
	for _, of := range c.of {
		if known[of] != nil {
			n++
		}
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	for i, key := range c.keys {
		f, g := &c.feeders[i], known[c.of[i]]
		if g == nil { // it came while the shards were drained
			continue
		}
		dst = binary.LittleEndian.AppendUint64(dst, key)
		dst = append(binary.AppendUvarint(dst, uint64(c.of[i])), byte(f.flags))
		dst = appendTimes(dst, f.start, f.time)
		if g.shape() == shapeNumber {
			dst = binary.LittleEndian.AppendUint64(dst, f.bits)
			continue
		}
		h := c.histograms[f.bits]
		h.bring(g.total.bounds)
		dst = h.append(dst)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[begin:]))
}

// closeFeeders writes what there is at the end.
func (p *cardinalityProcessor) closeFeeders(ctx context.Context) error {
	p.aggregator.flushing.Lock()
	defer p.aggregator.flushing.Unlock()
	p.aggregator.drain(nil, true)
	return p.saveFeeders(ctx, nil)
}

// loadFeeders goes on with what was saved. What is damaged is left out as a whole: its parts are worth nothing alone.
func (p *cardinalityProcessor) loadFeeders(ctx context.Context) (damaged bool, err error) {
	saved, err := p.storage.Get(ctx, snapshotAggregates)
	if err != nil {
		return false, fmt.Errorf("cannot read the snapshot: %w", err)
	}
	if len(saved) == 0 || p.dryRun {
		return false, nil
	}
	a := newAggregator(p.aggregator.budget, p.aggregator.idle)
	l := loading{aggregator: a, epoch: p.limiter.now().epoch(), known: map[uint64]*aggregate{}}
	parts, ok := l.aggregates(saved)
	for i := 0; ok && i < parts; i++ {
		if saved, err = p.storage.Get(ctx, feedersKey(i)); err != nil {
			return false, fmt.Errorf("cannot read the snapshot: %w", err)
		}
		ok = l.feeders(saved)
	}
	if !ok {
		return true, nil
	}
	if !l.closed && a.used.Load() > a.budget/8*7 {
		for _, s := range a.states { // there may have been series that passed for want of memory: who knows which
			s.since = pcommon.NewTimestampFromTime(p.now())
		}
	}
	p.aggregator = a
	return false, nil
}

// loading is what it takes to read what was saved.
type loading struct {
	*aggregator

	epoch  uint32
	closed bool
	stamp  uint64
	known  map[uint64]*aggregate // by number
}

// What states, aggregates and feeders take at least.
const (
	minSavedState     = 2 + 2*8 + 2*8 + 2
	minSavedAggregate = 4 + 3*8 + 8 + 4 + valueFields
	minSavedFeeder    = 8 + 2 + 2*8 + 8
)

func (l *loading) aggregates(saved []byte) (parts int, ok bool) {
	r, err := newReader(saved)
	if err != nil {
		return 0, false
	}
	l.closed, l.stamp = r.byte() == 1, r.word()
	parts = int(min(r.uvarint(), 1<<maxFeederShardBits))
	l.retired = r.time()
	for range r.count(minSavedState) {
		s := &aggregationState{name: r.string(), identity: r.word()}
		n := r.count(8)
		s.key = r.word()
		for range n {
			s.before = append(s.before, r.word())
		}
		s.since, s.flushed = r.time(), r.time()
		flags := r.byte()
		s.gone, s.interval = flags&1 != 0, time.Duration(r.uvarint())
		if s.interval < time.Second {
			return 0, false
		}
		s.rule = &aggregation{keepInput: flags&2 != 0, outputs: []operation{operationSum, operationCount}}
		if flags&4 != 0 {
			s.rule.outputs = s.rule.outputs[:1]
		}
		s.rule.limit = &limit{name: s.name, alive: &liveness{}}
		s.rule.taken = measuredAs(s.name)
		l.states = append(l.states, s)
	}
	for range r.count(minSavedAggregate) {
		g := l.aggregate(r)
		if g == nil || l.made[g.key] != nil || l.known[uint64(g.number)] != nil {
			return 0, false
		}
		l.known[uint64(g.number)], l.made[g.key] = g, g
		l.order = append(l.order, g)
		l.numbers = max(l.numbers, g.number)
		l.used.Add(g.cost)
		g.state.aggregate++
	}
	return parts, r.err == nil
}

// aggregate returns nil if it is none.
func (l *loading) aggregate(r *reader) *aggregate {
	state := r.uvarint()
	g := &aggregate{number: uint32(r.uvarint()), portions: make([]uint32, len(l.shards))}
	g.tenant = r.tenant()
	g.identity, g.keys.scope, g.keys.metric = r.word(), r.word(), r.word()
	g.start = r.time()
	flags := r.byte()
	g.sent, g.spoke, g.points = flags&1 != 0, flags&2 != 0, int(min(r.uvarint(), math.MaxInt32))
	for _, of := range r.bytes(r.count(1)) {
		if of >= byte(operations) {
			return nil
		}
		g.outputs = append(g.outputs, operation(of))
	}
	size := r.count(1)
	data := r.bytes(size)
	g.total.bounds = r.bounds()
	total := r.value()
	if r.err != nil || state >= uint64(len(l.states)) || len(g.outputs) == 0 || !slices.IsSorted(g.outputs) {
		return nil
	}
	if g.data, g.metric = onlyPoint(data); g.metric == (pmetric.Metric{}) {
		return nil
	}
	g.state = l.states[state]
	g.rule, g.key, g.class = g.state.rule, mix(g.state.key, g.identity), classOf(g.metric)
	g.form = shapeOf(g.metric)
	if !l.closed && g.class != classDelta {
		g.points = max(g.points, 1) // who knows whether it was sent
	}
	total.shape = g.shape()
	if total.shape == shapeSummary || !fitsBounds(&total, g.total.bounds) {
		return nil
	}
	g.total.value = total
	g.bounds.Store(g.total.bounds)
	upper := 0
	if g.total.bounds != nil {
		upper = len(g.total.bounds.upper)
	}
	g.cost = g.weight(size, upper)
	return g
}

func fitsBounds(v *value, b *bounds) bool {
	return len(v.cells) == 0 || b != nil && len(v.cells) == len(b.upper)+1
}

func (r *reader) bounds() *bounds {
	n := r.count(8)
	if n == 0 {
		return nil
	}
	b := &bounds{upper: make([]float64, n)}
	for i := range b.upper {
		b.upper[i] = math.Float64frombits(r.word())
	}
	return b
}

func (l *loading) feeders(saved []byte) bool {
	r, err := newReader(saved)
	if err != nil {
		return false
	}
	if r.word() != l.stamp {
		return false
	}
	for range r.count(minSavedFeeder) {
		key, g, flags := r.word(), l.known[r.uvarint()], feederFlags(r.byte())
		f := feeder{start: r.time(), time: r.time(), flags: flags & (feederFloat | feederResting | feederBegun)}
		if g == nil || key < 2 {
			return false
		}
		s := &l.shards[l.shardOf(key)]
		if s.slots.Load().find(key) >= 0 {
			return false
		}
		var fresh bool
		if f.portion, fresh = s.portionOf(g, l.shardOf(key)); fresh {
			l.used.Add(portionCost)
		}
		if g.shape() == shapeNumber {
			f.bits = r.word()
		} else {
			h := histogramFeeder{last: r.value(), bounds: g.total.bounds}
			if h.last.shape = g.shape(); !fitsBounds(&h.last, h.bounds) || g.class != classCumulative {
				return false
			}
			h.cost = histogramCost + h.last.cost()
			l.used.Add(h.cost)
			f.bits = uint64(s.keep())
			s.histograms[f.bits] = h
		}
		if r.err != nil {
			return false
		}
		l.used.Add(feederCost)
		p := &s.portions[f.portion]
		p.feeders++
		if f.flags&feederResting == 0 {
			p.awake++
		}
		g.state.feeders.Add(1)
		s.insert(key, f, l.epoch)
	}
	return r.err == nil
}
