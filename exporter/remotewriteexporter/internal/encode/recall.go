// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"errors"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	pdataslab "github.com/godwit-otel/godwit/internal/slab"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/histogram"
)

// recollection remembers the recognised points of metrics in memory that a receiver fills again and again, in the order
// of a walk. It is stored with that memory, see package handback: the receiver drops it when it changes which points
// there are, or their attributes, which therefore need not be read again. The encoder does not rely on that alone. A
// point is recalled only at the address where it was recognised, with as many attributes, the same family and the same
// bounds; from the first mismatch on, all points are recognised again.
//
// If components on the way change attributes, the receiver restores these, and the recollection has them as they came:
// they are compared, usually without reading a text.
//
// Resources are not part of it: similar targets share memory, and series. Targets with values of their own in
// attributes share memory, too, and then the points are remembered with the loan's wording instead.
type recollection struct {
	of       *account
	removals uint64 // of the cache; the recollection is valid until it changes
	metrics  []recalledMetric
	points   []recalledPoint
	compares bool
	said     []pdataslab.Attribute // of one point after the other, if they are compared
}

// recalledMetric is the family of a metric with these properties.
type recalledMetric struct {
	name, unit, help string
	shape            cache.Shape
	family           *cache.Family
}

// recalledPoint is the number of a point, 0 if it must be recognised each time.
type recalledPoint struct {
	at     pcommon.Map // address of its attributes, not their content
	length uint32
	number uint32
}

const (
	// maxRecalled limits the points that are remembered for metrics, 24 bytes each.
	maxRecalled = 1 << 16
	// maxCompared limits the attributes that are remembered for them, 40 bytes each.
	maxCompared = 1 << 16
)

// AddLent is Add for metrics with a loan, which may be nil.
func (e *Encoder) AddLent(md pmetric.Metrics, tenant string, loan *handback.Loan) error {
	resources := md.ResourceMetrics()
	return e.addAll(resources.Len(), resources.At, tenant, loan)
}

// AddArrived is Add for a batch of metrics, some of which have loans.
func (e *Encoder) AddArrived(md pmetric.Metrics, tenant string, arrived []handback.Arrival) error {
	var errs []error
	all := md.ResourceMetrics()
	add := func(from, to int, loan *handback.Loan) {
		if from < to {
			errs = append(errs, e.addAll(to-from, func(i int) pmetric.ResourceMetrics { return all.At(from + i) }, tenant, loan))
		}
	}
	done := 0
	for _, a := range arrived {
		add(done, a.First, nil)
		add(a.First, a.End, a.Loan)
		done = a.End
	}
	add(done, all.Len(), nil)
	return errors.Join(errs...)
}

// recall returns what is remembered about metrics of a tenant: nothing if their memory is not used again. If the points
// cannot be known from the loan's wording, the attributes that were left out are filled in.
func (e *Encoder) recall(t *account, loan *handback.Loan, points func() int) recalling {
	r := recalling{recollection: e.recollect(t, loan, points), loan: loan}
	if loan == nil || loan.Wording() == nil {
		return r
	}
	if r.recollection == nil {
		loan.Settle()
		return r
	}
	r.wording = loan.Wording()
	if n, _ := r.wording.Note(e).(*targetPoints); n != nil && n.of == t && n.removals == e.cache.Removals {
		r.words = n.numbers
		return r
	}
	r.loan.Settle()
	r.found, r.learns = make([]uint32, 0, min(points(), maxRecalled)), true
	return r
}

func (e *Encoder) recollect(t *account, loan *handback.Loan, points func() int) *recollection {
	if loan == nil {
		return nil
	}
	compares := !loan.Lasts()
	if compares && (!loan.Places().Lasts() || !pdataslab.Readable()) {
		return nil
	}
	note := loan.Note(e)
	if compares {
		note = loan.Places().Note(e)
	}
	r, _ := note.(*recollection)
	if r == nil {
		r = &recollection{points: make([]recalledPoint, 0, min(points(), maxRecalled))}
		if compares {
			loan.Places().Leave(e, r)
		} else {
			loan.Leave(e, r)
		}
	}
	if r.of != t || r.removals != e.cache.Removals {
		clear(r.metrics)
		clear(r.points)
		clear(r.said)
		*r = recollection{
			of: t, removals: e.cache.Removals, metrics: r.metrics[:0], points: r.points[:0], compares: compares, said: r.said[:0],
		}
	}
	return r
}

// targetPoints remembers the points of a target that shares memory with others.
type targetPoints struct {
	of       *account
	removals uint64 // of the cache; valid until it changes
	numbers  []uint32
}

// recalling goes through a recollection.
type recalling struct {
	*recollection // nil if there is none

	metric, point, attribute int // index of the next

	wording *handback.Wording // nil if the recollection has the points' numbers
	loan    *handback.Loan
	words   []uint32 // numbers of the points; nil if they must be found
	found   []uint32 // numbers of those found so far
	learns  bool     // found is to be stored with the wording
}

// store stores the points that were found, if all are in the cache.
func (r *recalling) store(owner any) {
	if r.learns && len(r.found) == len(r.points) {
		r.wording.Leave(owner, &targetPoints{of: r.of, removals: r.removals, numbers: r.found})
	}
}

// nextMetric returns the entry of a metric, with a nil family if that must be found; nil if nothing is remembered.
func (r *recalling) nextMetric(m pmetric.Metric, s cache.Shape) *recalledMetric {
	name, unit, help := m.Name(), m.Unit(), m.Description()
	if r.metric < len(r.metrics) {
		k := &r.metrics[r.metric]
		if k.name == name && k.unit == unit && k.help == help && k.shape == s {
			r.metric++
			return k
		}
		clear(r.metrics[r.metric:])
		r.metrics = r.metrics[:r.metric]
		r.forgetPoints()
		r.recogniseRest()
	}
	if len(r.metrics) == maxRecalled {
		return nil
	}
	r.metrics = append(r.metrics, recalledMetric{name: name, unit: unit, help: help, shape: s})
	r.metric++
	return &r.metrics[r.metric-1]
}

// nextPoint returns the entry of the point with these attributes; nil if nothing is remembered.
func (r *recalling) nextPoint(m pcommon.Map) *recalledPoint {
	if r.point < len(r.points) {
		k := &r.points[r.point]
		if k.at == m && k.length == uint32(m.Len()) {
			r.point++
			r.attribute += m.Len()
			return k
		}
		r.forgetPoints()
		r.recogniseRest()
	}
	if len(r.points) == maxRecalled || len(r.said) > maxCompared {
		r.recogniseRest()
		return nil
	}
	r.points = append(r.points, recalledPoint{at: m, length: uint32(m.Len())})
	r.point++
	if r.attribute += m.Len(); r.compares {
		r.said = append(r.said, pdataslab.Attributes(m)...)
	}
	return &r.points[r.point-1]
}

// saidOf returns the attributes of the point that nextPoint has returned, as they came last time.
func (r *recalling) saidOf(m pcommon.Map) []pdataslab.Attribute {
	return r.said[r.attribute-m.Len() : r.attribute]
}

// recogniseRest causes all further points to be recognised again, since some have changed.
func (r *recalling) recogniseRest() {
	if r.words != nil {
		r.loan.Settle()
		r.wording.Forget()
		r.words = nil
	}
}

// forgetPoints forgets the further points.
func (r *recalling) forgetPoints() {
	clear(r.points[r.point:])
	r.points = r.points[:r.point]
	if r.compares {
		clear(r.said[r.attribute:])
		r.said = r.said[:r.attribute]
	}
}

// familyOf returns the family of a metric: the recalled one, or the one that followed the metric before last time, or
// by its hash.
func (w *walk) familyOf(m pmetric.Metric, s cache.Shape) *cache.Family {
	if w.recollection == nil {
		return w.findFamily(m, s)
	}
	k := w.nextMetric(m, s)
	if k == nil {
		return w.findFamily(m, s)
	}
	if f := k.family; f != nil && !f.Dead && f.Kind == s.Kind && f.Schema == w.schema && f.Scope == w.scope && f.Scraped == w.scraped {
		return f
	}
	k.family = w.findFamily(m, s)
	return k.family
}

// pointOf returns the point with these attributes and bounds: the recalled one, or after recognising it.
func (w *walk) pointOf(m pcommon.Map, bounds []float64) *cache.Point {
	if w.recollection == nil {
		p, _ := w.findPoint(m, bounds)
		return p
	}
	at := w.recalling.point
	k := w.nextPoint(m)
	number := uint32(0)
	switch {
	case k == nil:
	case w.wording == nil:
		number = k.number
	case at < len(w.words):
		number = w.words[at]
	}
	if number != 0 && (!w.compares || pdataslab.Alike(w.saidOf(m), pdataslab.Attributes(m))) {
		p := w.c.Points.One(number)
		if o := w.c.Forms.One(p.Form); o.Family == w.family && histogram.SameBounds(o.Bounds, bounds) {
			w.hits++
			return p
		}
	}
	w.recogniseRest()
	p, n := w.findPoint(m, bounds)
	switch {
	case k == nil:
	case w.compares:
		copy(w.saidOf(m), pdataslab.Attributes(m))
		k.number = n
	case w.wording == nil:
		k.number = n
	case w.learns && n != 0:
		w.found = append(w.found, n)
	}
	return p
}
