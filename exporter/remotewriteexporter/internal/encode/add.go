// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"math"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/promwrite"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/histogram"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

// maxGathered is about how many samples one call of Add collects before it locks the columns.
const maxGathered = 4 << 10

// walk is the state of one call of Add.
type walk struct {
	recalling

	parts    []*handback.Part // of the loan, those not reached yet
	e        *Encoder
	c        *cache.Cache
	t        *account
	s        *scratch
	text     []string // of symbols
	resource *cache.Resource
	schema   *cache.Schema
	scope    *cache.Scope
	scraped  bool
	family   *cache.Family // the last metric; the one that followed it last time is expected
	before   *cache.Point  // the last point; the one that followed it last time is expected
	last     *cache.Point  // the last point of the metrics before
	form     *cache.Form   // form of the point that was last expected
	number   uint32        // of that form
	seen     uint32        // the encoder's generation, which does not end during a walk
	latest   int64         // timestamp of the resource's points
	hits     uint64
	misses   uint64
	moves    uint64
	ruledOut int // samples dropped by rules
}

// Add adds every point of md to the open columns of tenant. It keeps no reference to md. Points that cannot be sent are
// counted and left out; an error is about md as a whole.
func (e *Encoder) Add(md pmetric.Metrics, tenant string) error {
	return e.AddLent(md, tenant, nil)
}

// AddResources does the same with some resources of metrics, which are not modified.
func (e *Encoder) AddResources(resources []pmetric.ResourceMetrics, tenant string) error {
	return e.addAll(len(resources), func(i int) pmetric.ResourceMetrics { return resources[i] }, tenant, nil)
}

func (e *Encoder) addAll(n int, at func(i int) pmetric.ResourceMetrics, tenant string, loan *handback.Loan) error {
	if err := e.add(n, at, tenant, loan); err != nil {
		return err
	}
	if e.cache.WantsExpiry() {
		e.expire(false) // at once: so many ended points pay for it
	}
	return nil
}

func (e *Encoder) add(n int, at func(i int) pmetric.ResourceMetrics, tenant string, loan *handback.Loan) (err error) {
	all := func() (lost int) {
		for i := range n {
			lost += points(at(i))
		}
		return lost
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	defer e.losses.Survive(func(cause any) int {
		err = fmt.Errorf("cannot encode metrics: panic: %v", cause)
		return all()
	})
	if check := e.cfg.CheckTenant; tenant != "" && check != nil {
		if err := check(tenant); err != nil {
			name := strconv.Quote(tenant[:min(len(tenant), 64)])
			e.losses.Add(loss.TenantName, name, all())
			return fmt.Errorf("cannot take metrics of tenant %s: %w", name, err)
		}
	}
	t := e.account(tenant)
	if t == nil {
		e.losses.Add(loss.Tenants, tenant, all())
		return fmt.Errorf("cannot take metrics of tenant %q: there are %d tenants already", tenant, e.cfg.MaxTenants)
	}
	w := walk{e: e, c: e.cache, t: t, s: e.scratch(), text: e.cache.Symbols.Snapshot(), form: e.cache.Forms.One(0), seen: e.cache.Ages.Now(), recalling: e.recall(t, loan, all)}
	w.parts = loan.Parts()
	for i := range n {
		w.resourceMetrics(at(i))
	}
	w.store(e)
	w.s.Commit(t.columns)
	select {
	case e.scratches <- w.s:
	default: // enough scratches are idle
	}
	e.counters.hits.Add(w.hits)
	e.counters.misses.Add(w.misses)
	e.counters.moves.Add(w.moves)
	e.losses.Add(loss.Relabelled, "", w.ruledOut)
	return nil
}

// points counts the points of a resource.
func points(rm pmetric.ResourceMetrics) (n int) {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				n += m.Gauge().DataPoints().Len()
			case pmetric.MetricTypeSum:
				n += m.Sum().DataPoints().Len()
			case pmetric.MetricTypeHistogram:
				n += m.Histogram().DataPoints().Len()
			case pmetric.MetricTypeExponentialHistogram:
				n += m.ExponentialHistogram().DataPoints().Len()
			case pmetric.MetricTypeSummary:
				n += m.Summary().DataPoints().Len()
			default:
			}
		}
	}
	return n
}

func (w *walk) resourceMetrics(rm pmetric.ResourceMetrics) {
	w.resource = w.c.Resource(w.t.known, rm.Resource())
	w.schema = w.resource.Schema
	w.family, w.before, w.last, w.latest = nil, nil, nil, 0
	w.s.Begin(w.resource.Labels)
	scopes := rm.ScopeMetrics()
	for i := range scopes.Len() {
		sm := scopes.At(i)
		w.scraped = cache.Scraped(sm.Scope().Name())
		w.scope = w.c.Scope(w.t.known, sm.Scope(), w.scraped)
		metrics := sm.Metrics()
		for j := 0; j < metrics.Len(); {
			j += w.metricsFrom(metrics, j)
			if w.s.Points > maxGathered {
				w.s.Commit(w.t.columns)
			}
		}
	}
	if r := w.resource; r.Info != nil && w.latest != 0 &&
		r.InfoSent.Due(w.latest, w.e.cfg.TargetInfoInterval.Milliseconds()) {
		w.s.Begin(w.t.known.None)
		w.part(r.Info, w.latest, math.Float64bits(1), 0)
	}
}

// metricsFrom adds one metric, or a part of the loan that begins with it. It returns the number of metrics.
func (w *walk) metricsFrom(all pmetric.MetricSlice, at int) int {
	if len(w.parts) > 0 {
		if n := w.takePart(all, at); n > 0 { // fast path
			return n
		}
	}
	w.metric(all.At(at))
	return 1
}

func (w *walk) metric(m pmetric.Metric) {
	s := cache.ShapeOf(m)
	f := w.familyOf(m, s)
	if w.before != nil {
		w.last = w.before
	}
	w.family, w.before = f, nil
	if f.Reason != "" {
		w.e.losses.Add(f.Reason, m.Name(), max(countPoints(m), 1))
		return
	}
	switch s.Kind {
	case pmetric.MetricTypeGauge:
		points := m.Gauge().DataPoints()
		w.numbers(points, 0, points.Len())
	case pmetric.MetricTypeSum:
		points := m.Sum().DataPoints()
		w.numbers(points, 0, points.Len())
	case pmetric.MetricTypeHistogram:
		w.histograms(m.Histogram().DataPoints())
	case pmetric.MetricTypeExponentialHistogram:
		w.exponentials(m.ExponentialHistogram().DataPoints())
	case pmetric.MetricTypeSummary:
		w.summaries(m.Summary().DataPoints())
	default:
	}
}

// findFamily recognises a metric: as the one that followed its predecessor last time, else by its hash.
func (w *walk) findFamily(m pmetric.Metric, s cache.Shape) *cache.Family {
	expected := &w.resource.First
	if w.family != nil {
		expected = &w.family.Next
	}
	f := expected.Load()
	if f == nil || !f.Match(m, s, w.schema, w.scope, w.scraped) {
		f = w.c.Family(w.t.known, m, s, w.schema, w.scope, w.scraped)
		expected.Store(f)
	}
	return f
}

func countPoints(m pmetric.Metric) int {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return m.Summary().DataPoints().Len()
	default:
		return 0
	}
}

// known has the series of a recognised point.
type known struct {
	one   *cache.Series   // of a number or a native histogram; nil for others
	parts []*cache.Series // of a classic histogram or a summary; some may stand for an outcome of rules
}

// findPoint recognises a data point: as the one that followed its predecessor last time, else by its hash. Its number
// is 0 if it is in no table.
//
// The first point of a metric may follow the last one of the metric before, since that tells targets apart where points
// do, or else be the first one that the family had last time.
func (w *walk) findPoint(m pcommon.Map, bounds []float64) (p *cache.Point, number uint32) {
	expected := &w.family.First
	if w.before != nil {
		expected = &w.before.Next
	} else if w.last != nil {
		if p, number = w.expect(&w.last.Next, m, bounds); p != nil {
			return p, number
		}
	}
	if p, number = w.expect(expected, m, bounds); p != nil {
		return p, number
	}
	var found bool
	if p, number, found = w.c.Find(w.t.known, w.family, m, bounds); found {
		w.hits++
		w.moves++
	} else {
		w.misses++
	}
	w.text = w.c.Symbols.Snapshot()
	expected.Store(number)
	if w.before == nil && w.last != nil {
		w.last.Next.Store(number)
	}
	return p, number
}

// expect returns the expected point and its number if it has these attributes and bounds; else nil.
func (w *walk) expect(expected *atomic.Uint32, m pcommon.Map, bounds []float64) (p *cache.Point, number uint32) {
	number = expected.Load()
	p = w.c.Points.One(number)
	if p.Form != w.number { // nearly always that of the point before
		w.form, w.number = w.c.Forms.One(p.Form), p.Form
	}
	o := w.form
	if o.Family != w.family || !o.Keys.Match(m, o.Keys.ValuesOf(p.Values), w.text) || !histogram.SameBounds(o.Bounds, bounds) {
		return nil, 0
	}
	w.hits++
	return p, number
}

// point recognises a data point. It returns false if the point must be left out.
func (w *walk) point(m pcommon.Map, bounds []float64, time pcommon.Timestamp, stale bool) (k known, ok bool) {
	p := w.pointOf(m, bounds)
	if stale {
		w.c.Ages.End(&p.Seen)
	} else if p.Seen.Load() != w.seen {
		p.Seen.Store(w.seen)
	}
	w.before = p
	w.s.Unlisted = w.s.Unlisted || p.Form == 0
	if p.One != 0 {
		k.one = w.c.Series.One(p.One)
	}
	if p.Parts != 0 {
		k.parts = *w.c.Parts.One(p.Parts)
	}
	if k.one == nil && k.parts == nil {
		if out := w.c.OutcomeOf(p.Parts); out == nil {
			w.e.losses.Add(loss.Label, w.family.Name, 1)
		} else if w.leaveOut(out); time >= 1e6 {
			w.latest = max(w.latest, millis(time)) // the point exists, only this sample is not wanted
		}
		return k, false
	}
	if p.Form == 0 && w.family.Temporality == pmetric.AggregationTemporalityDelta {
		w.e.losses.Add(loss.DeltaLimit, w.family.Name, 1) // its sum would be lost with it
		return k, false
	}
	if time < 1e6 {
		w.e.losses.Add(loss.Time, w.family.Name, 1)
		return k, false
	}
	w.latest = max(w.latest, millis(time))
	return k, true
}

// numbers adds points of the family.
func (w *walk) numbers(points pmetric.NumberDataPointSlice, first, end int) {
	counter := w.family.Kind == pmetric.MetricTypeSum && w.family.Monotonic
	delta := w.family.Temporality == pmetric.AggregationTemporalityDelta
	for i := first; i < end; i++ {
		dp := points.At(i)
		stale := dp.Flags().NoRecordedValue()
		p, ok := w.point(dp.Attributes(), nil, dp.Timestamp(), stale)
		if !ok {
			continue
		}
		var value float64
		bits, start := promwrite.StaleNaN, int64(0)
		if !stale {
			switch dp.ValueType() {
			case pmetric.NumberDataPointValueTypeDouble:
				value = dp.DoubleValue()
			case pmetric.NumberDataPointValueTypeInt:
				value = float64(dp.IntValue())
			default:
				w.e.losses.Add(loss.Empty, w.family.Name, 1)
				continue
			}
			bits = math.Float64bits(value)
		}
		if counter {
			start = w.start(dp.StartTimestamp())
		}
		if delta && !stale {
			var reason loss.Reason
			if value, start, reason = w.e.deltas.Number(w.key(p), value, dp.StartTimestamp(), dp.Timestamp()); reason != "" {
				w.e.losses.Add(reason, w.family.Name, 1)
				continue
			}
			bits, start = math.Float64bits(value), w.startMillis(start)
		}
		w.s.Add(p.one, millis(dp.Timestamp()), bits, start)
		if dp.Exemplars().Len() > 0 {
			w.exemplars(dp.Exemplars(), p, nil, millis(dp.Timestamp()))
		}
	}
}

func (w *walk) summaries(points pmetric.SummaryDataPointSlice) {
	for i := range points.Len() {
		dp := points.At(i)
		quantiles := dp.QuantileValues()
		w.s.bounds = w.s.bounds[:0]
		for j := range quantiles.Len() {
			w.s.bounds = append(w.s.bounds, quantiles.At(j).Quantile())
		}
		stale := dp.Flags().NoRecordedValue()
		p, ok := w.point(dp.Attributes(), w.s.bounds, dp.Timestamp(), stale)
		if !ok {
			continue
		}
		time, start := millis(dp.Timestamp()), w.start(dp.StartTimestamp())
		w.part(p.parts[cache.PartSum], time, orStale(dp.Sum(), stale), start)
		w.part(p.parts[cache.PartCount], time, orStale(float64(dp.Count()), stale), start)
		for j := range quantiles.Len() {
			w.part(p.parts[cache.PartBound+j], time, orStale(quantiles.At(j).Value(), stale), start)
		}
	}
}

// part adds a number to a series, unless rules have left nothing of that.
func (w *walk) part(s *cache.Series, time int64, bits uint64, start int64) {
	if s.Layout == 0 {
		w.leaveOut(s)
		return
	}
	w.s.Add(s, time, bits, start)
}

func orStale(v float64, stale bool) uint64 {
	if stale {
		return promwrite.StaleNaN
	}
	return math.Float64bits(v)
}

// millis converts a timestamp to that of Remote Write.
func millis(t pcommon.Timestamp) int64 { return int64(t / 1e6) }

// start converts a start timestamp to that of Remote Write; zero if unknown or unwanted.
func (w *walk) start(t pcommon.Timestamp) int64 {
	if !w.e.cfg.StartTimestamps || t == 0 {
		return 0
	}
	return max(millis(t), 1) // zero would mean unknown
}

func (w *walk) startMillis(t int64) int64 {
	if !w.e.cfg.StartTimestamps {
		return 0
	}
	return t
}

// leaveOut counts a sample whose series rules have left nothing of.
func (w *walk) leaveOut(s *cache.Series) {
	if w.c.IsDropped(s) {
		w.ruledOut++
		return
	}
	w.e.losses.Add(loss.Rules, w.family.Name, 1)
}

// scratch is memory for walks.
type scratch struct {
	*column.Gathering

	// Used for one point at a time.
	bounds      []float64
	counts      []uint64
	encoded     []byte
	exponential histogram.Exponential
	native      promwrite.Histogram
}

func (e *Encoder) scratch() *scratch {
	select {
	case s := <-e.scratches:
		return s
	default:
		return &scratch{Gathering: column.NewGathering(e.cfg.Shards)}
	}
}
