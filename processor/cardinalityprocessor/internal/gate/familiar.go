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

// A target shows the same series again and again. Once it is known of a page that all of its series have a place, and that there is
// nothing to do about any of them, the next such page passes as a whole: what it has is compared with hints, and nobody looks into the
// table for each of its points. When its series were seen is noted with the page, and told to the table before it matters there.

// rest is for how many epochs a page passes as a whole until its series are looked for again: half of an idle timeout. They are told
// apart from those that are idle long before these go.
const rest = moment.IdleEpochs / 2

// absence is for how many epochs a page does not come before the table is told when it came last. With rest that is less than an idle
// timeout, and more than most pages are apart.
const absence = moment.IdleEpochs/2 - 3

// maxFamiliar is how many pages are remembered. A scope of a resource is one.
const maxFamiliar = 1 << 16

// familiar are pages, by the hashes of their scopes.
type familiar struct {
	Passed atomic.Int64 // whole pages

	limiter *series.Limiter

	mu    sync.RWMutex
	pages map[uint64]*page
}

// page is what is known of one.
type page struct {
	scope uint64

	mu           sync.Mutex
	known        knowledge
	walked, seen moment.Moment // when its series were looked for, and when it came, last
	endings      uint64        // of its series
	gone         bool          // what it has seen is not told to the table any more
}

// knowledge is of which metrics all series have a place. It holds as long as the rules are the same, and nobody has lost a place.
type knowledge struct {
	shape      *ident.Shape // nil if nothing is known
	plain      []bool       // by metric
	all        bool         // are plain
	generation uint32
	losses     uint64
}

func (k *knowledge) isPlain(metric int) bool { return k.all || k.plain[metric] }

// of returns the page of a scope, which may be a new one. It returns nil if there are too many.
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

// ask returns what is known of a page of a shape, and how many endings it had.
func (p *page) ask(s *ident.Shape, generation uint32, losses uint64, now moment.Moment) (k knowledge, endings uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k = p.known; s == nil || k.shape == nil || k.shape.Sum != s.Sum || k.generation != generation || k.losses != losses ||
		p.gone || now.Epoch()-p.walked.Epoch() >= rest {
		k.shape = nil
	}
	return k, p.endings
}

// see records that a page has come of which this is known. It returns false if that does not hold any more.
func (p *page) see(k *knowledge, now moment.Moment) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || p.known.shape != k.shape {
		return false
	}
	p.seen = max(p.seen, now)
	return true
}

// learn records what is known of a page whose series were all looked for, unless some have ended meanwhile.
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

// improve records that metrics are plain which were not when the page's series were looked for: the labels of some were being counted then.
func (f *familiar) improve(p *page, k *knowledge, plain []bool, endings uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || p.endings != endings || p.known.shape != k.shape || f.limiter.Losses.Load() != k.losses {
		return
	}
	if p.known.all = !slices.Contains(plain, false); p.known.all {
		p.known.plain = nil
	} else {
		p.known.plain = slices.Clone(plain) // others may be reading what was there
	}
}

// tell has the table know when series of a page were seen. The page's lock is held.
func (f *familiar) tell(p *page) {
	if p.known.shape != nil && p.seen > p.walked {
		p.known.shape.Each(p.scope, p.known.isPlain, func(fp uint64) { f.limiter.Series.Seen(fp, p.seen) })
	}
}

// end is called when series of scopes have ended.
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

// forget has the table know what it does not of pages that do not come any more.
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
	for _, p := range idle { // one by one, for batches may wait
		p.mu.Lock()
		if p.gone = isIdle(p); p.gone {
			f.tell(p)
			p.known = knowledge{}
		}
		p.mu.Unlock()
		if p.gone { // which is so for ever
			f.mu.Lock()
			delete(f.pages, p.scope)
			f.mu.Unlock()
		}
	}
}

// acquaintance is what a batch knows, and finds out, of the page at hand.
type acquaintance struct {
	page    *page // nil if nothing is to be known of it
	known   knowledge
	from    ident.Place // of hints
	changes uint64      // of hints, until then
	endings uint64
	losses  uint64
	begun   moment.Moment
	next    int    // metric, for isNextPlain
	plain   []bool // metrics that were decided about, or were known to be
}

// kept is for the next page: the memory, if that is not too much.
func (a *acquaintance) kept() acquaintance {
	if cap(a.plain) > maxRetained {
		return acquaintance{}
	}
	return acquaintance{plain: a.plain[:0]}
}

// isFamiliar reports whether the page at hand may pass as a whole.
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

// isShaped says whether the page at hand has the shape that is known, and how many points.
func (b *Batch) isShaped(a *acquaintance, of pmetric.MetricSlice) (points int, ok bool) {
	if !b.sealed || !a.known.all {
		return b.isOf(a.known.shape, of)
	}
	if points, ok = b.fit(a.known.shape, of); ok {
		b.hinted.Pass(a.known.shape)
	}
	return points, ok
}

// isOf says whether the page at hand has this shape, by hints, and whether none of its series ends, and how many points it has.
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

// isNextPlain reports whether nothing is to be decided about the next metric.
func (a *acquaintance) isNextPlain() bool { return a.known.shape != nil && a.known.isPlain(a.next) }

// getToKnow records what was found out about the page at hand.
func (b *Batch) getToKnow() {
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
	b.spell(s)
	b.g.Familiar.learn(a.page, knowledge{
		shape: s, plain: slices.Clone(a.plain), generation: b.Policy.Generation, losses: a.losses,
	}, a.endings, a.begun)
}
