// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/store"
)

// Aggregates are saved like the overflow: before a flush is sent, so that whatever anyone has seen is saved, even if
// the process is killed. What a killed process received since then has not been seen by anyone, and is contained in the
// next values of cumulative inputs. Deltas that are about to be sent are not saved, because they could be sent twice.
// Everything is written at once: one value for the aggregates, and one for the feeders of each shard:
//
//	magic | closed | stamp | parts | retired | states | aggregates | CRC-32
//	magic | stamp | feeders | CRC-32

// MaxParts is the largest number of parts in which feeders are saved.
const MaxParts = 1 << maxFeederShardBits

// savedFeeders are the feeders of a shard as they were when it was drained.
type savedFeeders struct {
	keys       []uint64
	feeders    []feeder
	of         []uint32 // numbers of their aggregates
	histograms []amount.Bucketed
}

// copy copies them, without those of deltas, which need not be remembered. The shard's lock is held.
func (c *savedFeeders) copy(s *feederShard) {
	*c = savedFeeders{keys: c.keys[:0], feeders: c.feeders[:0], of: c.of[:0], histograms: c.histograms[:0]}
	rows := s.rows.Load()
	for row := range s.used {
		key := rows.row(row).key.Load()
		if key == 0 {
			continue
		}
		f := rows.feeder(row)
		g := s.portions[f.portion].of
		if g.Class == amount.ClassDelta || f.flags&feederBegun == 0 {
			continue
		}
		if g.shape() != amount.ShapeNumber {
			h := &s.histograms[f.bits]
			f.bits = uint64(len(c.histograms))
			c.histograms = append(c.histograms, amount.Bucketed{Value: h.last, Bounds: h.bounds})
		}
		c.keys, c.feeders, c.of = append(c.keys, key), append(c.feeders, f), append(c.of, g.number)
	}
}

// Snapshot returns the state to be saved, for which the shards were drained: the aggregates, and the feeders of each
// shard.
func (a *Aggregator) Snapshot(now time.Time, due map[*State]pcommon.Timestamp) (state []byte, shards [][]byte) {
	stamp := uint64(now.UnixNano())
	known := map[uint32]*Aggregate{}
	state = a.appendAggregates(nil, stamp, due, known)
	for i := range a.saved {
		shards = append(shards, a.saved[i].append(nil, stamp, known))
	}
	return state, shards
}

// appendAggregates appends the aggregates, and records their numbers.
func (a *Aggregator) appendAggregates(
	dst []byte, stamp uint64, due map[*State]pcommon.Timestamp, known map[uint32]*Aggregate,
) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	begin := len(dst)
	dst = store.AppendFlags(append(dst, store.Magic...), due == nil)
	dst = binary.LittleEndian.AppendUint64(dst, stamp)
	dst = binary.AppendUvarint(dst, uint64(len(a.Shards)))
	dst = store.AppendTimes(dst, a.retired)
	dst = binary.AppendUvarint(dst, uint64(len(a.States)))
	index := map[*State]uint64{}
	for i, s := range a.States {
		index[s] = uint64(i)
		dst = store.AppendString(dst, s.name)
		dst = binary.AppendUvarint(binary.LittleEndian.AppendUint64(dst, s.identity), uint64(len(s.before)))
		for _, key := range append([]uint64{s.key}, s.before...) {
			dst = binary.LittleEndian.AppendUint64(dst, key)
		}
		flushed := s.Flushed
		if at := due[s]; at != 0 {
			flushed = at
		}
		dst = store.AppendTimes(dst, s.Since, flushed)
		dst = binary.AppendUvarint(store.AppendFlags(dst, s.gone, s.Rule.KeepInput, len(s.Rule.outputs) == 1), uint64(s.interval))
	}
	var all []*Aggregate
	for _, g := range a.Order {
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

// append appends an aggregate, as it will be after what is due has been sent.
func (g *Aggregate) append(dst []byte, state uint64, due bool) []byte {
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, state), uint64(g.number))
	dst = ident.AppendTenant(dst, g.Tenant)
	for _, word := range []uint64{g.identity, g.Keys.Scope, g.Keys.Metric} {
		dst = binary.LittleEndian.AppendUint64(dst, word)
	}
	dst = store.AppendTimes(dst, g.Start)
	points, total := uint64(g.points), g.total
	speaks, _ := g.says()
	if due && g.Class == amount.ClassDelta {
		points, total = 0, amount.Bucketed{Bounds: total.Bounds}
	}
	dst = binary.AppendUvarint(store.AppendFlags(dst, g.sent || due && speaks, g.spoke || due && speaks), points)
	dst = append(binary.AppendUvarint(dst, uint64(len(g.Outputs))), operationBytes(g.Outputs)...)
	var to pmetric.ProtoMarshaler
	data, _ := to.MarshalMetrics(g.Data) // it never fails
	dst = append(binary.AppendUvarint(dst, uint64(len(data))), data...)
	dst = amount.AppendBounds(dst, total.Bounds)
	return total.Append(dst)
}

func operationBytes(all []policy.Operation) (raw []byte) {
	for _, of := range all {
		raw = append(raw, byte(of))
	}
	return raw
}

// append appends the feeders, with values that are not numbers in the bounds of their aggregates.
func (c *savedFeeders) append(dst []byte, stamp uint64, known map[uint32]*Aggregate) []byte {
	begin := len(dst)
	dst = binary.LittleEndian.AppendUint64(append(dst, store.Magic...), stamp)
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
		dst = store.AppendTimes(dst, f.start, f.time)
		if g.shape() == amount.ShapeNumber {
			dst = binary.LittleEndian.AppendUint64(dst, f.bits)
			continue
		}
		h := c.histograms[f.bits]
		h.Bring(g.total.Bounds)
		dst = h.Append(dst)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[begin:]))
}

// Restored returns an aggregator that continues from a saved state, nil if that is damaged.
func (a *Aggregator) Restored(saved []byte, epoch uint32, now time.Time, part func(i int) ([]byte, error)) (*Aggregator, error) {
	to := New(a.Budget, a.idle)
	to.Tenants, to.Instance = a.Tenants, a.Instance
	l := loading{Aggregator: to, epoch: epoch, known: map[uint64]*Aggregate{}}
	parts, ok := l.aggregates(saved)
	for i := 0; ok && i < parts; i++ {
		feeders, err := part(i)
		if err != nil {
			return nil, err
		}
		ok = l.feeders(feeders)
	}
	if !ok {
		return nil, nil
	}
	if !l.closed && to.Used.Load() > to.Budget/8*7 {
		for _, s := range to.States { // series may have passed because memory was short, and it is not known which
			s.Since = pcommon.NewTimestampFromTime(now)
		}
	}
	return to, nil
}

// loading holds what is needed to read a saved state.
type loading struct {
	*Aggregator

	epoch  uint32
	closed bool
	stamp  uint64
	known  map[uint64]*Aggregate // by number
}

// The least sizes of states, aggregates and feeders.
const (
	minSavedState     = 2 + 2*8 + 2*8 + 2
	minSavedAggregate = 4 + 3*8 + 8 + 4 + amount.ValueFields
	minSavedFeeder    = 8 + 2 + 2*8 + 8
)

func (l *loading) aggregates(saved []byte) (parts int, ok bool) {
	r, err := store.NewReader(saved)
	if err != nil {
		return 0, false
	}
	l.closed, l.stamp = r.Byte() == 1, r.Word()
	parts = int(min(r.Uvarint(), MaxParts))
	l.retired = r.Time()
	for range r.Count(minSavedState) {
		s := &State{name: r.String(), identity: r.Word()}
		n := r.Count(8)
		s.key = r.Word()
		for range n {
			s.before = append(s.before, r.Word())
		}
		s.Since, s.Flushed = r.Time(), r.Time()
		flags := r.Byte()
		s.gone, s.interval = flags&1 != 0, time.Duration(r.Uvarint())
		if s.interval < time.Second {
			return 0, false
		}
		s.Rule = &Rule{KeepInput: flags&2 != 0, outputs: []policy.Operation{policy.OperationSum, policy.OperationCount}}
		if flags&4 != 0 {
			s.Rule.outputs = s.Rule.outputs[:1]
		}
		s.Rule.Limit = &policy.Limit{Name: s.name, Alive: &policy.Liveness{}}
		s.Rule.Taken = l.Instance.MeasuredOf(s.name)
		l.States = append(l.States, s)
	}
	for range r.Count(minSavedAggregate) {
		g := l.aggregate(r)
		if g == nil || l.Made[g.key] != nil || l.known[uint64(g.number)] != nil {
			return 0, false
		}
		l.known[uint64(g.number)], l.Made[g.key] = g, g
		l.Order = append(l.Order, g)
		l.numbers = max(l.numbers, g.number)
		g.account = l.accountOf(g.Tenant.Name)
		l.open(g)
		l.take(g.account, g.Cost)
		g.state.aggregate++
	}
	return parts, r.Err == nil
}

// aggregate reads an aggregate. It returns nil if there is no valid one.
func (l *loading) aggregate(r *store.Reader) *Aggregate {
	state := r.Uvarint()
	g := &Aggregate{number: uint32(r.Uvarint()), portions: make([]uint32, len(l.Shards))}
	g.Tenant = ident.ReadTenant(r)
	g.identity, g.Keys.Scope, g.Keys.Metric = r.Word(), r.Word(), r.Word()
	g.Start = r.Time()
	flags := r.Byte()
	g.sent, g.spoke, g.points = flags&1 != 0, flags&2 != 0, int(min(r.Uvarint(), math.MaxInt32))
	for _, of := range r.Bytes(r.Count(1)) {
		if of >= byte(policy.Operations) {
			return nil
		}
		g.Outputs = append(g.Outputs, policy.Operation(of))
	}
	size := r.Count(1)
	data := r.Bytes(size)
	g.total.Bounds = amount.ReadBounds(r)
	total := amount.ReadValue(r)
	if r.Err != nil || state >= uint64(len(l.States)) || len(g.Outputs) == 0 || !slices.IsSorted(g.Outputs) {
		return nil
	}
	if g.Data, g.Metric = amount.OnlyPoint(data); g.Metric == (pmetric.Metric{}) {
		return nil
	}
	g.state = l.States[state]
	g.Rule, g.key, g.Class = g.state.Rule, ident.Mix(g.state.key, g.identity), amount.ClassOf(g.Metric)
	g.form = amount.ShapeOf(g.Metric)
	if !l.closed && g.Class != amount.ClassDelta {
		g.points = max(g.points, 1) // it is not known whether it was sent
	}
	total.Shape = g.shape()
	if total.Shape == amount.ShapeSummary || !amount.FitsBounds(&total, g.total.Bounds) {
		return nil
	}
	g.total.Value = total
	g.Bounds.Store(g.total.Bounds)
	upper := 0
	if g.total.Bounds != nil {
		upper = len(g.total.Bounds.Upper)
	}
	g.Cost = g.Weight(size, upper)
	return g
}

func (l *loading) feeders(saved []byte) bool {
	r, err := store.NewReader(saved)
	if err != nil {
		return false
	}
	if r.Word() != l.stamp {
		return false
	}
	for range r.Count(minSavedFeeder) {
		key, g, flags := r.Word(), l.known[r.Uvarint()], feederFlags(r.Byte())
		f := feeder{start: r.Time(), time: r.Time(), flags: flags & (feederFloat | feederResting | feederBegun)}
		if g == nil || key < 2 {
			return false
		}
		s := &l.Shards[l.ShardOf(key)]
		if s.rows.Load().find(key) != noRow {
			return false
		}
		var fresh bool
		if f.portion, fresh = s.portionOf(g, l.ShardOf(key)); fresh {
			l.take(g.account, PortionCost)
		}
		if g.shape() == amount.ShapeNumber {
			f.bits = r.Word()
		} else {
			h := histogramFeeder{last: amount.ReadValue(r), bounds: g.total.Bounds}
			if h.last.Shape = g.shape(); !amount.FitsBounds(&h.last, h.bounds) || g.Class != amount.ClassCumulative {
				return false
			}
			h.cost = HistogramCost + h.last.Cost()
			l.take(g.account, h.cost)
			f.bits = uint64(s.keep())
			s.histograms[f.bits] = h
		}
		if r.Err != nil {
			return false
		}
		l.take(g.account, FeederCost)
		p := &s.portions[f.portion]
		p.feeders++
		if f.flags&feederResting == 0 {
			p.awake++
		}
		g.state.Feeders.Add(1)
		s.insert(key, f, l.epoch)
	}
	return r.Err == nil
}
