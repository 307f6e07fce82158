// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"errors"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/histogram"
)

// recollection is what the points of metrics were recognised as whose memory a receiver fills again and again, in the order of a walk.
// It is left with that memory, as package handback has it: the receiver drops it when it changes which points there are, or their
// attributes, which therefore need not be read again. Nothing depends on that alone. A point is recalled for the address that it was
// recognised at, as many attributes, the same family and the same bounds; from the first that differs on, all is recognised anew.
//
// Resources are not part of it: targets that are alike share memory, and series. Targets that each have values of their own in attributes share
// memory, too, and then it is not about these: which points they are is left with the wording that the loan has.
type recollection struct {
	of       *account
	removals uint64 // from the cache, until then
	metrics  []recalledMetric
	points   []recalledPoint
}

// recalledMetric is the family of a metric that says this of itself.
type recalledMetric struct {
	name, unit, help string
	shape            cache.Shape
	family           *cache.Family
}

// recalledPoint is the number of a point, 0 if it has to be recognised each time.
type recalledPoint struct {
	at     pcommon.Map // its attributes: where they are, not what they are
	length uint32
	number uint32
}

// maxRecalled is how many points are recalled of metrics, 24 bytes each.
const maxRecalled = 1 << 16

// AddLent is Add for metrics that came with a loan, if there is one.
func (e *Encoder) AddLent(md pmetric.Metrics, tenant string, loan *handback.Loan) error {
	resources := md.ResourceMetrics()
	return e.addAll(resources.Len(), resources.At, tenant, loan)
}

// AddArrived is Add for a batch of metrics some of which came with loans.
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

// recall returns what is recalled of metrics of a tenant: nothing when they may not come again. Where their points are not known by what the loan
// says of them, what is owed is settled.
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
	if n, _ := r.wording.Note(e).(*worded); n != nil && n.of == t && n.removals == e.cache.Removals {
		r.words = n.numbers
		return r
	}
	r.loan.Settle()
	r.found, r.learns = make([]uint32, 0, min(points(), maxRecalled)), true
	return r
}

func (e *Encoder) recollect(t *account, loan *handback.Loan, points func() int) *recollection {
	if loan == nil || !loan.Lasts() {
		return nil
	}
	r, _ := loan.Note(e).(*recollection)
	if r == nil {
		r = &recollection{points: make([]recalledPoint, 0, min(points(), maxRecalled))}
		loan.Leave(e, r)
	}
	if r.of != t || r.removals != e.cache.Removals {
		clear(r.metrics)
		clear(r.points)
		*r = recollection{of: t, removals: e.cache.Removals, metrics: r.metrics[:0], points: r.points[:0]}
	}
	return r
}

// worded is which points a target's are that shares memory with others.
type worded struct {
	of       *account
	removals uint64 // from the cache, until then
	numbers  []uint32
}

// recalling goes through a recollection.
type recalling struct {
	*recollection // nil without any

	metric, point int // the next

	wording *handback.Wording // nil if the recollection has the points' numbers
	loan    *handback.Loan
	words   []uint32 // the points' numbers; nil if they are to be found
	found   []uint32 // those that were
	learns  bool     // they are to be left with the wording
}

// leave notes which points were found, if all are in the cache.
func (r *recalling) leave(owner any) {
	if r.learns && len(r.found) == len(r.points) {
		r.wording.Leave(owner, &worded{of: r.of, removals: r.removals, numbers: r.found})
	}
}

// nextMetric returns what is recalled of a metric, its family nil if that has to be found; nil if nothing is to be recalled.
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
		r.doubt()
	}
	if len(r.metrics) == maxRecalled {
		return nil
	}
	r.metrics = append(r.metrics, recalledMetric{name: name, unit: unit, help: help, shape: s})
	r.metric++
	return &r.metrics[r.metric-1]
}

// nextPoint returns what is recalled of the point with some attributes; nil if nothing is to be recalled.
func (r *recalling) nextPoint(m pcommon.Map) *recalledPoint {
	if r.point < len(r.points) {
		k := &r.points[r.point]
		if k.at == m && k.length == uint32(m.Len()) {
			r.point++
			return k
		}
		r.forgetPoints()
		r.doubt()
	}
	if len(r.points) == maxRecalled {
		r.doubt()
		return nil
	}
	r.points = append(r.points, recalledPoint{at: m, length: uint32(m.Len())})
	r.point++
	return &r.points[r.point-1]
}

// doubt has points be found from here on: some of those that were there are not what they were.
func (r *recalling) doubt() {
	if r.words != nil {
		r.loan.Settle()
		r.wording.Forget()
		r.words = nil
	}
}

// forgetPoints forgets those to come.
func (r *recalling) forgetPoints() {
	clear(r.points[r.point:])
	r.points = r.points[:r.point]
}

// familyOf is the family of a metric: the recalled one, or as the one that followed the metric before last time, else by hash.
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

// pointOf is the point of some attributes and bounds: the recalled one, or whatever has to be recognised.
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
	if number != 0 {
		p := w.c.Points.One(number)
		if o := w.c.Forms.One(p.Form); o.Family == w.family && histogram.SameBounds(o.Bounds, bounds) {
			w.hits++
			return p
		}
	}
	w.doubt()
	p, n := w.findPoint(m, bounds)
	switch {
	case k == nil:
	case w.wording == nil:
		k.number = n
	case w.learns && n != 0:
		w.found = append(w.found, n)
	}
	return p
}
