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

	mu    sync.RWMutex
	pages map[uint64]*page
}

// page is what is known about a page.
type page struct {
	scope uint64

	mu           sync.Mutex
	known        knowledge
	walked, seen moment.Moment // when its series were last looked up, and when it last came
	endings      uint64        // number of ends of its series
	gone         bool          // removed: it no longer reports to the table
}

// knowledge says which metrics only have series with a place. It is valid while the rules are the same and no series
// loses its place.
type knowledge struct {
	shape      *ident.Shape // nil if nothing is known
	plain      []bool       // by metric
	all        bool         // all metrics are plain
	generation uint32
	losses     uint64
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

// ask returns what is known about a page with a shape, and the number of its endings.
func (p *page) ask(s *ident.Shape, generation uint32, losses uint64, now moment.Moment) (k knowledge, endings uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k = p.known; s == nil || k.shape == nil || k.shape.Sum != s.Sum || k.generation != generation || k.losses != losses ||
		p.gone || now.Epoch()-p.walked.Epoch() >= rest {
		k.shape = nil
	}
	return k, p.endings
}

// see records that a page came which matches k. It returns false if k is no longer valid.
func (p *page) see(k *knowledge, now moment.Moment) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || p.known.shape != k.shape {
		return false
	}
	p.seen = max(p.seen, now)
	return true
}

// learn records what was found out when all series of a page were looked up, unless some ended meanwhile.
func (f *familiar) learn(p *page, k knowledge, endings uint64, now moment.Moment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || p.endings != endings || f.limiter.Losses.Load() != k.losses {
		return
	}
	f.tell(p)
	if k.all = !slices.Contains(k.plain, false); k.all {
		k.plain = nil
	}
	p.known, p.walked, p.seen = k, now, max(p.seen, now)
}

// improve records that more metrics are plain than when the page's series were looked up, because the labels of some
// were being counted then.
func (f *familiar) improve(p *page, k *knowledge, plain []bool, endings uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || p.endings != endings || p.known.shape != k.shape || f.limiter.Losses.Load() != k.losses {
		return
	}
	if p.known.all = !slices.Contains(plain, false); p.known.all {
		p.known.plain = nil
	} else {
		p.known.plain = slices.Clone(plain) // others may be reading the old slice
	}
}

// tell reports to the table when series of a page were seen. The caller must hold the page's lock.
func (f *familiar) tell(p *page) {
	if p.known.shape != nil && p.seen > p.walked {
		p.known.shape.Each(p.scope, p.known.isPlain, func(fp uint64) { f.limiter.Series.Seen(fp, p.seen) })
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
		f.tell(p)
		p.known = knowledge{}
		p.endings++
		p.mu.Unlock()
	}
}

// forget removes pages that no longer come, after reporting to the table when they came last.
func (f *familiar) forget(now moment.Moment) {
	isIdle := func(p *page) bool { return moment.Silence(now.Epoch(), p.seen.Epoch()) > absence }
	var idle []*page
	f.mu.RLock()
	for _, p := range f.pages {
		p.mu.Lock()
		if isIdle(p) {
			idle = append(idle, p)
		}
		p.mu.Unlock()
	}
	f.mu.RUnlock()
	for _, p := range idle { // one by one, because batches may be waiting
		p.mu.Lock()
		if p.gone = isIdle(p); p.gone {
			f.tell(p)
			p.known = knowledge{}
		}
		p.mu.Unlock()
		if p.gone { // it stays so
			f.mu.Lock()
			delete(f.pages, p.scope)
			f.mu.Unlock()
		}
	}
}

// currentPage is what a batch knows and finds out about the current page.
type currentPage struct {
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
	return currentPage{plain: a.plain[:0]}
}

// isFamiliar reports whether the current page may pass as a whole.
func (b *Batch) isFamiliar(of pmetric.MetricSlice, scope uint64) bool {
	b.page = b.page.kept()
	a, f := &b.page, &b.g.Familiar
	if b.hinted.Hints == nil || len(b.aggregations) > 0 {
		return false
	}
	if a.page = f.of(scope); a.page == nil {
		return false
	}
	a.from, a.changes = b.hinted.Here(), b.hinted.Changes
	a.losses, a.begun = f.limiter.Losses.Load(), f.limiter.Now()
	a.known, a.endings = a.page.ask(b.hinted.Shape(a.from), b.Policy.Generation, a.losses, a.begun)
	if a.known.shape == nil {
		return false
	}
	points, ok := b.isShaped(a, of)
	if !ok || !a.page.see(&a.known, a.begun) {
		a.known = knowledge{}
	}
	if a.known.shape == nil || !a.known.all {
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
	if !b.sealed || !a.known.all {
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
	a := &b.page
	if a.page == nil || b.hinted.Changes != a.changes && b.words == nil || !slices.Contains(a.plain, true) {
		return
	}
	if k := &a.known; k.shape != nil {
		if len(a.plain) == k.shape.Metrics() && !slices.Equal(a.plain, k.plain) {
			b.g.Familiar.improve(a.page, k, a.plain, a.endings)
		}
		return
	}
	s := b.hinted.Shape(a.from)
	if s == nil {
		s = b.hinted.MakeShape(a.from)
	}
	if s == nil || s.Metrics() != len(a.plain) {
		return
	}
	b.recordShape(s)
	b.g.Familiar.learn(a.page, knowledge{
		shape: s, plain: slices.Clone(a.plain), generation: b.Policy.Generation, losses: a.losses,
	}, a.endings, a.begun)
}
