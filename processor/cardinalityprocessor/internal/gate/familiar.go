// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// A target sends the same series again and again. If all series of a page are known to have a place, and nothing must
// be decided about any of them, the next equal page passes as a whole: it is compared with hints, and no point is
// looked up in the table. The page records when its series were seen, and reports that to the table before it matters
// there.

// rest is the number of epochs for which a page passes as a whole before its series are looked up again: half of an
// idle timeout, so that series that are gone are noticed long before they expire.
const rest = moment.IdleEpochs / 2

// absence is the number of epochs without a page after which the table is told when the page came last. Together with
// rest, this is less than an idle timeout, and more than the interval of most pages.
const absence = moment.IdleEpochs/2 - 3

// maxFamiliar is the maximum number of pages. A scope of a resource is a page.
const maxFamiliar = 1 << 16

// familiar are the known pages, by the hash of their scope.
type familiar struct {
	Passed atomic.Int64 // pages that passed as a whole

	limiter *series.Limiter

	mu     sync.RWMutex
	pages  map[uint64]*page
	shapes map[uint64]*ident.Shape // by their sums, so that pages share them; made anew by forget
}

// page is what is known about a page, or about each of its parts if it comes in parts.
type page struct {
	scope uint64

	mu      sync.Mutex
	known   []knowledge   // by part
	seen    moment.Moment // when the page last came
	endings uint64        // number of ends of its series
	gone    bool          // removed: it no longer reports to the table
}

// maxParts is the maximum number of a page's parts about which something is known.
const maxParts = 1 << 12

// knowledge says which metrics only have series with a place. It is valid while the rules are the same and no series
// loses its place.
type knowledge struct {
	shape        *ident.Shape // nil if nothing is known
	plain        []bool       // by metric
	all          bool         // all metrics are plain
	refused      *rejections  // points that others lose each time; nil if there are none
	whole        bool         // that is all others
	generation   uint32
	losses       uint64
	walked, seen moment.Moment // when its series were last looked up, and when they last came
}

// isWhole reports whether nothing must be decided about any metric.
func (k *knowledge) isWhole() bool { return k.all || k.whole }

// isSeen reports whether series of a metric are not looked up.
func (k *knowledge) isSeen(metric int) bool {
	if k.isWhole() || k.plain[metric] {
		return true
	}
	for i := 0; k.refused != nil && i < len(k.refused.metrics); i++ {
		if k.refused.metrics[i].index == metric {
			return true
		}
	}
	return false
}

// decided sets what was decided about the metrics.
func (k *knowledge) decided(plain []bool, refused *rejections) {
	others := 0
	for _, is := range plain {
		if !is {
			others++
		}
	}
	k.refused, k.all, k.plain = refused, others == 0, nil
	k.whole = refused != nil && len(refused.metrics) == others
	if !k.all {
		k.plain = slices.Clone(plain) // others may be reading the old slice
	}
}

func (k *knowledge) isPlain(metric int) bool { return k.all || k.plain[metric] }

// of returns the page of a scope, which it adds if necessary. It returns nil if there are too many.
func (f *familiar) of(scope uint64) *page {
	f.mu.RLock()
	p := f.pages[scope]
	f.mu.RUnlock()
	if p != nil {
		return p
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if p = f.pages[scope]; p == nil && len(f.pages) < maxFamiliar {
		p = &page{scope: scope}
		f.pages[scope] = p
	}
	return p
}

// share returns the shape that pages with the same sum have.
func (f *familiar) share(s *ident.Shape) *ident.Shape {
	f.mu.Lock()
	defer f.mu.Unlock()
	if shared := f.shapes[s.Sum]; shared != nil {
		return shared
	}
	if f.shapes == nil {
		f.shapes = map[uint64]*ident.Shape{}
	}
	f.shapes[s.Sum] = s
	return s
}

// ask returns what is known about a part of a page with a shape, and the number of the page's endings.
func (p *page) ask(part int, s *ident.Shape, generation uint32, losses uint64, now moment.Moment) (k knowledge, endings uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if part >= len(p.known) {
		return knowledge{}, p.endings
	}
	if k = p.known[part]; s == nil || k.shape == nil || k.shape.Sum != s.Sum || k.generation != generation || k.losses != losses ||
		now.Epoch()-k.walked.Epoch() >= rest || k.refused != nil && window(k.walked) != window(now) {
		k.shape = nil
	}
	return k, p.endings
}

// see records that a part of a page came which matches k. It returns false if k is no longer valid.
func (p *page) see(part int, k *knowledge, now moment.Moment) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if part >= len(p.known) || p.known[part].shape != k.shape {
		return false
	}
	p.seen = max(p.seen, now)
	p.known[part].seen = max(p.known[part].seen, now)
	return true
}

// learn records what was found out when all series of a part of a page were looked up, unless some ended meanwhile.
func (f *familiar) learn(p *page, part int, k knowledge, endings uint64, now moment.Moment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || p.endings != endings || part >= maxParts || f.limiter.Losses.Load() != k.losses {
		return
	}
	if missing := part + 1 - len(p.known); missing > 0 {
		p.known = append(p.known, make([]knowledge, missing)...)
	}
	was := &p.known[part]
	f.tell(p, was)
	k.walked, k.seen = now, max(was.seen, now)
	p.seen = max(p.seen, now)
	*was = k
}

// improve records that something else is known about metrics than when the page's series were looked up, because the
// labels of some were being counted then, or because others are rejected.
func (f *familiar) improve(p *page, part int, a *currentPage, refused *rejections) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.endings != a.endings || part >= len(p.known) || p.known[part].shape != a.known.shape || f.limiter.Losses.Load() != a.known.losses {
		return
	}
	switch k := &p.known[part]; {
	case !a.anyRepeated: // all metrics were decided about
		k.decided(a.plain, refused)
	case refused == nil:
		k.decided(a.plain, k.refused)
	case k.walked.Epoch() != a.begun.Epoch(): // find out about all of them
		f.tell(p, k)
		*k = knowledge{}
	}
}

// tell reports to the table when series of a part of a page were seen. The caller must hold the page's lock.
func (f *familiar) tell(p *page, k *knowledge) {
	if k.shape != nil && k.seen > k.walked {
		k.shape.Each(p.scope, k.isSeen, func(fp uint64) { f.limiter.Series.Seen(fp, k.seen) })
	}
}

// drop forgets what is known about parts of a page that were last seen before an epoch, after reporting that to the
// table. The caller must hold the page's lock.
func (f *familiar) drop(p *page, isIdle func(moment.Moment) bool) {
	for i := range p.known {
		if k := &p.known[i]; isIdle(k.seen) {
			f.tell(p, k)
			*k = knowledge{}
		}
	}
}

// end removes what is known about pages of scopes in which series have ended.
func (f *familiar) end(scopes []uint64) {
	for _, scope := range scopes {
		f.mu.RLock()
		p := f.pages[scope]
		f.mu.RUnlock()
		if p == nil {
			continue
		}
		p.mu.Lock()
		f.drop(p, func(moment.Moment) bool { return true })
		p.endings++
		p.mu.Unlock()
	}
}

// forget removes pages and parts that no longer come, after reporting to the table when they came last.
func (f *familiar) forget(now moment.Moment) {
	isIdle := func(seen moment.Moment) bool { return moment.Silence(now.Epoch(), seen.Epoch()) > absence }
	var idle []*page
	shapes := map[uint64]*ident.Shape{}
	f.mu.RLock()
	for _, p := range f.pages {
		p.mu.Lock()
		some := isIdle(p.seen)
		for i := range p.known {
			if k := &p.known[i]; k.shape != nil {
				some = some || isIdle(k.seen)
				shapes[k.shape.Sum] = k.shape
			}
		}
		if some {
			idle = append(idle, p)
		}
		p.mu.Unlock()
	}
	f.mu.RUnlock()
	for _, p := range idle { // one by one, because batches may be waiting
		p.mu.Lock()
		f.drop(p, isIdle)
		p.gone = isIdle(p.seen)
		p.mu.Unlock()
		if p.gone { // it stays so
			f.mu.Lock()
			delete(f.pages, p.scope)
			f.mu.Unlock()
		}
	}
	f.mu.Lock()
	f.shapes = shapes
	f.mu.Unlock()
}

// currentPage is what a batch knows and finds out about the current page.
type currentPage struct {
	rejecting

	page    *page // nil if nothing must be recorded about it
	known   knowledge
	from    ident.Place // position in the hints
	changes uint64      // changes of the hints up to there
	endings uint64
	losses  uint64
	begun   moment.Moment
	next    int    // index of a metric, for isNextPlain
	plain   []bool // by metric that was decided about or known: whether it is plain
}

// kept returns the memory for the next page, if it is not too large.
func (a *currentPage) kept() currentPage {
	if cap(a.plain) > maxRetained {
		return currentPage{}
	}
	return currentPage{plain: a.plain[:0], rejecting: a.rejecting.kept()}
}

// isFamiliar reports whether the current page may pass as a whole.
func (b *Batch) isFamiliar(of pmetric.MetricSlice, scope uint64) bool {
	b.page = b.page.kept()
	a, f := &b.page, &b.g.Familiar
	if b.hinted.Hints == nil && b.knownShapes == nil || len(b.aggregations) > 0 {
		return false
	}
	if a.page = f.of(scope); a.page == nil {
		return false
	}
	a.losses, a.begun, a.unplacedThen = f.limiter.Losses.Load(), f.limiter.Now(), f.limiter.Unplaced.Load()
	s := b.nextKnownShape()
	if s == nil {
		a.from, a.changes = b.hinted.Here(), b.hinted.Changes
		s = b.hinted.Shape(a.from)
	}
	a.known, a.endings = a.page.ask(b.ofPage, s, b.Policy.Generation, a.losses, a.begun)
	if a.known.shape == nil {
		return false
	}
	points, ok := b.isShaped(a, of)
	if !ok || !a.page.see(b.ofPage, &a.known, a.begun) {
		a.known = knowledge{}
	}
	if r := a.known.refused; r != nil && b.hold(r) {
		a.repeated = r
	}
	if a.known.shape == nil || !a.known.all && (!a.known.whole || a.repeated == nil) {
		b.hinted.Return(a.from)
		return false
	}
	f.Passed.Add(1)
	b.came += int64(points)
	b.weighScope(of)
	return true
}

// isShaped reports whether the current page has the known shape, and returns its number of points.
func (b *Batch) isShaped(a *currentPage, of pmetric.MetricSlice) (points int, ok bool) {
	if b.hinted.Hints == nil {
		return b.fit(a.known.shape, of)
	}
	if !b.sealed || !a.known.isWhole() {
		return b.isOf(a.known.shape, of)
	}
	if points, ok = b.fit(a.known.shape, of); ok {
		b.hinted.Pass(a.known.shape)
	}
	return points, ok
}

// isOf reports whether the current page has a shape, according to hints, and none of its series ends. It returns the
// number of points.
func (b *Batch) isOf(s *ident.Shape, metrics pmetric.MetricSlice) (points int, ok bool) {
	found := 0
	points = s.Points()
	for i := range metrics.Len() {
		m := metrics.At(i)
		if b.Owner.Metric = m.Name(); b.passes() {
			points += amount.PointCount(m)
			continue
		}
		if !b.hinted.Is(m) {
			return 0, false
		}
		found++
	}
	return points, found == s.Metrics()
}

// isNextPlain reports whether nothing must be decided about the next metric.
func (a *currentPage) isNextPlain() bool { return a.known.shape != nil && a.known.isPlain(a.next) }

// learnPage records what was found out about the current page.
func (b *Batch) learnPage() {
	a, f := &b.page, &b.g.Familiar
	if a.page == nil || b.words == nil && b.hinted.Changes != a.changes {
		return
	}
	refused := a.take()
	if k := &a.known; k.shape != nil {
		if len(a.plain) == k.shape.Metrics() && (refused != nil || k.refused != nil && !a.anyRepeated || !slices.Equal(a.plain, k.plain)) {
			f.improve(a.page, b.ofPage, a, refused)
		}
		return
	}
	if refused == nil && !slices.Contains(a.plain, true) {
		return
	}
	if b.hinted.Hints == nil {
		return
	}
	s := b.hinted.Shape(a.from)
	if s == nil {
		if s = b.hinted.MakeShape(a.from, f.share); s == nil {
			return
		}
	}
	if s.Metrics() != len(a.plain) {
		return
	}
	b.recordShape(s)
	k := knowledge{shape: s, generation: b.Policy.Generation, losses: a.losses}
	k.decided(a.plain, refused)
	f.learn(a.page, b.ofPage, k, a.endings, a.begun)
}
