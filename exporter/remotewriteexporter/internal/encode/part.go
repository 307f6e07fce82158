// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	pdataslab "github.com/godwit-otel/godwit/internal/slab"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
)

// knownPart has all recognised points of a part of a loan: of metrics that a receiver uses together again and again, among
// others each time. It is stored with the part.
//
// As with a recollection, the encoder does not rely on the receiver alone: the part is taken as a whole if the same
// metrics come with the same numbers of points and attributes, and the same properties. A point that is no longer a
// float is taken separately.
type knownPart struct {
	of       *account
	removals uint64 // of the cache; valid until it changes
	schema   *cache.Schema
	scope    *cache.Scope
	scraped  bool
	metrics  []partMetric
	points   []partPoint
	slots    []uint32 // slots of the points' series in the buffer, plus one; 0 if there is none yet

	// The generation in which all points were last seen, and the number of ended points then.
	seen, endings uint32
	sweeps        cache.Mark // after which all families existed
	// The number of the buffer that slots refer to.
	buffer uint64
}

// partMetric is a metric with these properties, and the end of its points.
type partMetric struct {
	name, unit, help string
	family           *cache.Family
	monotonic        bool
	temporality      int32
	end              int
}

// lookEvery is how seldom a part whose points lack attributes is checked: once in this many times.
const lookEvery = 64

type partPoint struct {
	point  *cache.Point
	series *cache.Series
	length int32 // number of its attributes
	counts bool  // it may have a start timestamp
}

// takePart takes a part of the loan, if one begins with a metric. It returns how many metrics it has; 0 if these must
// be taken one by one.
func (w *walk) takePart(all pmetric.MetricSlice, from int) int {
	part := w.parts[0]
	at, ok := part.Memory.(*pdataslab.Stretch)
	if !ok {
		return 0
	}
	metrics := pdataslab.Metrics(all)[from:]
	stands := at.StandsAt(metrics[0])
	if !stands && metrics[0] != at.Metrics[0] {
		return 0
	}
	w.parts = w.parts[1:]
	// A part whose attributes were left out is checked only now and then, since no component between may change it. The
	// number of points is known to be right.
	looks := !at.Deferred || part.Turn()%lookEvery == 0
	if stands {
		if n := w.knownWhole(part, at, looks); n != nil && len(n.metrics) > 0 && (!looks || at.Begins(at.Metrics)) { // fast path
			w.takeDeferred(n, at)
			return 1
		}
		at.Unfold()
		metrics = pdataslab.Metrics(all)[from:]
	}
	last := len(at.Metrics) - 1
	if !part.Lasts() || looks && !at.Begins(metrics) || len(metrics) <= last || metrics[last] != at.Metrics[last] {
		at.Settle()
		return 0
	}
	n := w.partOf(part, at, all, from, looks)
	if n == nil {
		at.Settle()
		return 0
	}
	switch {
	case at.Deferred:
		w.takeDeferred(n, at)
	case len(w.s.Shards) == 1:
		w.markSeen(n)
		w.addPart(n, at, all, from)
		w.before = n.points[len(n.points)-1].point
	default:
		w.markSeen(n)
		first := 0
		for i := range n.metrics {
			m := &n.metrics[i]
			w.family = m.family
			w.addPartMetric(m, n.points[first:m.end], at.Points[first:m.end], all, from+i)
			first = m.end
		}
		w.before = n.points[len(n.points)-1].point
	}
	return len(n.metrics)
}

// takeDeferred takes the points of a part whose attributes were left out.
func (w *walk) takeDeferred(n *knownPart, at *pdataslab.Stretch) {
	w.markSeen(n)
	if len(w.s.Shards) == 1 { // fast path
		w.addDeferred(n, at)
	} else {
		for i := range n.points {
			k, f := &n.points[i], &at.Floats[i]
			w.s.Add(k.series, f.At, math.Float64bits(f.Value), w.startOf(k, f))
			w.latest = max(w.latest, f.At)
		}
		w.endPart(n)
	}
	w.before = n.points[len(n.points)-1].point
}

// knownWhole returns what is known about a part, without metrics if these must be taken one by one; nil if nothing is
// known.
func (w *walk) knownWhole(part *handback.Part, at *pdataslab.Stretch, looks bool) *knownPart {
	n, _ := part.Note(w.e).(*knownPart)
	if n != nil && n.of == w.t && n.removals == w.c.Removals && n.schema == w.schema && n.scope == w.scope && n.scraped == w.scraped &&
		(!looks && n.sweeps == w.c.Sweeps || n.isUnchanged(at, w.c.Sweeps)) {
		return n
	}
	return nil
}

// partOf returns what is known about a part, after recognising its points if needed; nil if it must be taken one by
// one.
func (w *walk) partOf(part *handback.Part, at *pdataslab.Stretch, all pmetric.MetricSlice, from int, looks bool) *knownPart {
	n := w.knownWhole(part, at, looks)
	if n != nil {
		if len(n.metrics) == 0 { // it could not be taken as a whole, which may change with the cache
			return nil
		}
		return n
	}
	n = &knownPart{of: w.t, removals: w.c.Removals, schema: w.schema, scope: w.scope, scraped: w.scraped}
	if !w.recognise(n, at, all, from) {
		n.metrics, n.points = nil, nil
	}
	part.Leave(w.e, n)
	if len(n.metrics) == 0 {
		return nil
	}
	return n
}

// isUnchanged reports whether metrics still have the same properties. Their families are checked once after each sweep, since
// only sweeps remove any.
func (n *knownPart) isUnchanged(at *pdataslab.Stretch, sweeps cache.Mark) bool {
	looked := n.sweeps == sweeps
	n.sweeps = sweeps
	for i := range n.metrics {
		m := &n.metrics[i]
		name, unit, help := at.Metrics[i].Texts()
		monotonic, temporality := at.Metrics[i].Sums()
		if m.name != name || m.unit != unit || m.help != help || m.monotonic != monotonic || m.temporality != temporality || !looked && m.family.Dead {
			return false
		}
	}
	return true
}

// recognise finds the points of a part. It returns false if one must be recognised each time.
func (w *walk) recognise(n *knownPart, at *pdataslab.Stretch, all pmetric.MetricSlice, from int) bool {
	family, before, last := w.family, w.before, w.last
	defer func() { w.family, w.before, w.last = family, before, last }()
	n.metrics, n.points = make([]partMetric, 0, len(at.Metrics)), make([]partPoint, 0, len(at.Points))
	for i := range at.Metrics {
		m := all.At(from + i)
		f := w.findFamily(m, cache.ShapeOf(m))
		if w.before != nil {
			w.last = w.before
		}
		w.family, w.before = f, nil
		if f.Reason != "" || f.Dead || f.Temporality != pmetric.AggregationTemporalityCumulative {
			return false
		}
		points := numbersOf(m)
		monotonic, temporality := at.Metrics[i].Sums()
		for j := range points.Len() {
			attributes := points.At(j).Attributes()
			p, number := w.findPoint(attributes, nil)
			if number == 0 || p.One == 0 {
				return false
			}
			w.before = p
			n.points = append(n.points, partPoint{point: p, series: w.c.Series.One(p.One), length: int32(attributes.Len()), counts: monotonic})
		}
		known := partMetric{name: m.Name(), unit: m.Unit(), help: m.Description(), family: f, end: len(n.points)}
		known.monotonic, known.temporality = monotonic, temporality
		n.metrics = append(n.metrics, known)
	}
	return true
}

func numbersOf(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints()
	}
	return m.Gauge().DataPoints()
}

// markSeen records that all points of a part are in use. That is done once in a generation, and again if any point has ended
// since, which may be one of these.
func (w *walk) markSeen(n *knownPart) {
	endings := w.c.Ages.EverEnded()
	if n.seen == w.seen && n.endings == endings {
		return
	}
	n.seen, n.endings = w.seen, endings
	for i := range n.points {
		if p := n.points[i].point; p.Seen.Load() != w.seen {
			p.Seen.Store(w.seen)
		}
	}
}

// addPart adds the points of a part to the only column. The slots of its series are known as long as the buffer is the
// same.
func (w *walk) addPart(n *knownPart, at *pdataslab.Stretch, all pmetric.MetricSlice, from int) {
	if w.s.Points > 0 { // they came before
		w.s.Commit(w.t.columns)
	}
	m := 0
	for i := 0; i < len(n.points); i++ {
		if i = w.addPlain(n, at, i); i == len(n.points) {
			break
		}
		for n.metrics[m].end <= i {
			m++
		}
		first := 0
		if m > 0 {
			first = n.metrics[m-1].end
		}
		w.family = n.metrics[m].family
		w.numbers(numbersOf(all.At(from+m)), i-first, i-first+1)
		w.s.Commit(w.t.columns) // a series may be there twice
	}
	w.family = n.metrics[len(n.metrics)-1].family
}

// addDeferred adds the points of a part whose attributes were left out to the only column. Nobody has read the points, so
// they are not checked.
func (w *walk) addDeferred(n *knownPart, at *pdataslab.Stretch) {
	if w.s.Points > 0 { // they came before
		w.s.Commit(w.t.columns)
	}
	c := &w.t.columns[0]
	b := c.Lock()
	defer c.Unlock()
	n.useBuffer(b)
	b.Begin(w.s.Labels)
	latest := w.latest
	for first := 0; first < len(n.slots); {
		room := b.Samples.More(len(n.slots) - first)
		slots, floats := n.slots[first:][:len(room)], at.Floats[first:][:len(room)]
		for i := range room {
			f := &floats[i]
			if slots[i] == 0 {
				slots[i] = b.Slot(n.points[first+i].series) + 1
			}
			slot := slots[i] - 1
			b.Counts[slot]++
			s := &room[i]
			s.Of, s.Extra, s.Time, s.Bits = slot, 0, f.At, math.Float64bits(f.Value)
			if f.Start != 0 {
				b.AddStart(s, w.startOf(&n.points[first+i], f))
			}
			latest = max(latest, f.At)
		}
		first += len(room)
	}
	w.latest = latest
	w.endPart(n)
}

// startOf returns the start timestamp of a point, if it may have one.
func (w *walk) startOf(k *partPoint, f *pdataslab.Float) int64 {
	if f.Start == 0 || !k.counts {
		return 0
	}
	return w.startMillis(f.Start)
}

// endPart records that a part was taken.
func (w *walk) endPart(n *knownPart) {
	w.hits += uint64(len(n.points))
	w.family = n.metrics[len(n.metrics)-1].family
}

// useBuffer makes slots refer to a buffer.
func (n *knownPart) useBuffer(b *column.Buffer) {
	if n.buffer != b.Number {
		n.buffer = b.Number
		n.slots = slices.Grow(n.slots[:0], len(n.points))[:len(n.points)]
		clear(n.slots)
	}
}

// addPlain adds the points from one to the first that is not a float, and returns the index of that.
func (w *walk) addPlain(n *knownPart, at *pdataslab.Stretch, from int) (next int) {
	c := &w.t.columns[0]
	b := c.Lock()
	defer c.Unlock()
	n.useBuffer(b)
	b.Begin(w.s.Labels)
	time, millisOf := uint64(0), int64(0)
	for i := from; i < len(n.points); i++ {
		k := &n.points[i]
		q := at.Points[i]
		bits, t, start, ok := q.Float()
		if !ok || t < 1e6 || len(q.Attributes()) != int(k.length) {
			return i
		}
		if t != time {
			time, millisOf = t, int64(t/1e6)
			w.latest = max(w.latest, millisOf)
		}
		if n.slots[i] == 0 {
			n.slots[i] = b.Slot(k.series) + 1
		}
		slot := n.slots[i] - 1
		b.Counts[slot]++
		s := b.Samples.Add()
		s.Of, s.Extra, s.Time, s.Bits = slot, 0, millisOf, bits
		if start != 0 && k.counts {
			b.AddStart(s, w.start(pcommon.Timestamp(start)))
		}
		w.hits++
	}
	return len(n.points)
}

// addPartMetric adds the points of a metric, which are all recognised.
func (w *walk) addPartMetric(m *partMetric, known []partPoint, points []*pdataslab.Number, all pmetric.MetricSlice, at int) {
	time, millisOf := uint64(0), int64(0)
	for i, q := range points {
		k := &known[i]
		bits, t, start, ok := q.Float()
		if !ok || t < 1e6 || len(q.Attributes()) != int(k.length) {
			w.numbers(numbersOf(all.At(at)), i, i+1)
			continue
		}
		if t != time {
			time, millisOf = t, int64(t/1e6)
			w.latest = max(w.latest, millisOf)
		}
		w.hits++
		began := int64(0)
		if m.monotonic && start != 0 {
			began = w.start(pcommon.Timestamp(start))
		}
		w.s.Add(k.series, millisOf, bits, began)
	}
}
