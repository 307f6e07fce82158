// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// A pool has trees that wait to be filled, for all plans that have the same metrics, whatever their points. Targets that show
// the same metrics about things of their own so share a tree for each scrape that may be under way, not one for each plan.
type pool struct {
	key   uint64
	plans int // under the lock of pools

	mu        sync.Mutex
	trees     []*Tree
	most      int // trees
	each      int // plans, as long as they are few: each is to have a tree of its own
	later     int // trees beside these, that come back many at once
	abandoned bool

	since   pcommon.Timestamp // a window; 0 until something was filled
	fills   []fills           // by how many points a page has, in powers of two
	idle    int64             // how many points wait in trees that are seldom filled, wherever
	idling  int64             // points of such trees of its own, were they kept
	largest int64             // points of the largest page
}

// fills are how many points of pages of one size were filled: in a window, and a second in the one before.
type fills struct {
	now  int64
	rate float64
}

// idling is how many points would wait in trees that are seldom filled, were all of these kept. Of a fleet with more such pages than there is room
// for, trees of some few would take memory for next to nothing.
var idling atomic.Int64

// retained counts the points of trees that wait to be filled. Past fewRetained, a layout has one tree that waits; past mostRetained,
// none is kept: they go to the collector, and pages are built anew.
var retained atomic.Int64

const (
	fewRetained  = 1 << 15
	mostRetained = 1 << 17
	// IdlePoints is how many points wait in trees that are seldom filled, where all that would wait are no more.
	IdlePoints = 1 << 13
	// busyRate is how often a second each point of a tree is filled that is not: what that spares is worth the memory that it takes.
	busyRate = 2
	// window is for how long fills are counted.
	window = 20 * time.Second
	// FewPlans is for how many plans a tree is kept for each: it then has the plan's points, and needs values alone.
	FewPlans = 8
	// laterTrees is how many wait besides where many come back at once, out of a batch.
	laterTrees = 1 << 8
)

// Pools are those of the layouts of plans that are in use.
type Pools struct {
	mu     sync.Mutex
	shared map[uint64]*pool // by their metrics
	of     map[*plan.Layout]*pool
}

// Join makes the pool of a layout's plan.
func (ps *Pools) Join(l *plan.Layout) {
	key := uint64(len(l.Metrics))
	for i := range l.Metrics {
		key = (key ^ uint64(l.Metrics[i].Family.ID)) * 0x9e3779b97f4a7c15
		key ^= key >> 29
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.shared == nil {
		ps.shared, ps.of = map[uint64]*pool{}, map[*plan.Layout]*pool{}
	}
	p := ps.shared[key]
	if p == nil {
		p = &pool{key: key}
		ps.shared[key] = p
	}
	ps.of[l] = p
	p.plans++
	p.bound()
}

// Leave drops the trees of a layout's plan when there is no plan any more that has use for them.
func (ps *Pools) Leave(l *plan.Layout) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.of[l]
	if p == nil {
		return
	}
	delete(ps.of, l)
	if p.plans--; p.plans > 0 {
		p.bound()
		p.forsake(l)
		return
	}
	delete(ps.shared, p.key)
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.trees) > 0 {
		p.remove(0)
	}
	p.abandoned = true
	p.weigh()
}

// Take returns a tree to fill, if one is free. It may be given back.
func (ps *Pools) Take(l *plan.Layout) *Tree {
	if p := ps.pool(l); p != nil {
		return p.take(l)
	}
	return nil
}

// Give takes a tree back.
func (ps *Pools) Give(t *Tree) {
	if p := ps.pool(t.Layout); p != nil {
		p.give(t)
	}
}

// Keeps notes that metrics are made of a layout, and tells whether a tree of them will be kept.
func (ps *Pools) Keeps(l *plan.Layout, at pcommon.Timestamp, j *Job) bool {
	p := ps.pool(l)
	return p != nil && p.keeps(int64(len(l.Points)), at, j)
}

func (ps *Pools) pool(l *plan.Layout) *pool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.of[l]
}

// Waiting returns how many pools there are, and how many trees wait in them to be filled.
func (ps *Pools) Waiting() (pools, trees int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.shared {
		p.mu.Lock()
		trees += len(p.trees)
		p.mu.Unlock()
	}
	return len(ps.shared), trees
}

func (p *pool) bound() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.largest = 0                  // the page may be that of a plan which has ended
	p.most = runtime.GOMAXPROCS(0) // as many as scrapes can be filling
	if p.each = 0; p.plans <= FewPlans {
		p.each = p.plans
		p.most += p.plans - 1
	}
	for len(p.trees) > p.most+p.later {
		p.remove(0)
	}
}

// forsake drops the trees of a plan that has ended, if there is one besides for each that has not.
func (p *pool) forsake(l *plan.Layout) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.trees) - 1; i >= 0 && len(p.trees) > p.plans; i-- {
		if p.trees[i].Layout == l {
			p.remove(i)
		}
	}
}

// remove takes out a tree.
func (p *pool) remove(i int) *Tree {
	t := p.trees[i]
	p.trees = slices.Delete(p.trees, i, i+1)
	retained.Add(-t.size())
	return t
}

// size is how many points a tree has, whether its page needs them or not.
func (t *Tree) size() int64 { return int64(len(t.Layout.Points) + t.stowed) }

// suits tells whether a tree suits so many points better than another: it has them, and few beside them.
func (t *Tree) suits(points int64, other *Tree) bool {
	a, b := t.size(), other.size()
	if a >= points && b >= points {
		return a < b
	}
	return a > b
}

// take returns a tree to fill, if one is free: best one that has a layout's points. Another plan's is left where it is while each may
// have its own: it would get the attributes of the page's points, stow those that the page has not, and its plan would take a third one's,
// until each of them had as many points as the largest page.
func (p *pool) take(l *plan.Layout) *Tree {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, points := -1, int64(len(l.Points))
	for i, t := range slices.Backward(p.trees) { // the last one to come back is the one that caches have most of
		if t.Layout == l {
			return p.remove(i)
		}
		if (found < 0 || t.suits(points, p.trees[found])) && t.Layout.HasMetricsOf(l) {
			found = i
		}
	}
	if found < 0 || len(p.trees) < p.each && retained.Load()+points <= mostRetained {
		return nil
	}
	if t := p.trees[found]; points > t.size() && p.isIdle(points-t.size(), points) {
		return nil // it would grow, and not be kept
	}
	return p.remove(found)
}

// give takes a tree back.
func (p *pool) give(t *Tree) {
	n := t.size()
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := retained.Load()
	if p.abandoned || len(p.trees) >= p.most+p.later || waiting > mostRetained || waiting > fewRetained && p.hasSpare(t.Layout) ||
		p.isIdle(n, n) {
		return
	}
	p.trees = append(p.trees, t)
	retained.Add(n)
}

// keeps counts the points that are filled, and tells whether a tree of so many points is kept.
func (p *pool) keeps(points int64, at pcommon.Timestamp, j *Job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch past := time.Duration(at - p.since); {
	case p.since == 0 || at < p.since:
		p.since = at
		for i := range p.fills {
			p.fills[i].now = 0
		}
	case past >= window:
		p.since = at
		for i := range p.fills {
			f := &p.fills[i]
			f.now, f.rate = 0, float64(f.now)/past.Seconds()
		}
	}
	size := bits.Len64(uint64(points))
	if missing := size + 1 - len(p.fills); missing > 0 {
		p.fills = append(p.fills, make([]fills, missing)...)
	}
	p.fills[size].now += points
	p.idle, p.largest = j.Idle, max(p.largest, points)
	if j.Later {
		p.later = laterTrees
	}
	p.weigh()
	return retained.Load() <= mostRetained && !p.isIdle(points, points)
}

// weigh counts the trees that the pool would have.
func (p *pool) weigh() {
	points := p.largest * int64(max(p.each, 1))
	if p.abandoned || !p.isSeldom(points, p.largest) {
		points = 0
	}
	idling.Add(points - p.idling)
	p.idling = points
}

// isSeldom tells whether trees of so many points are filled too seldom for what they take, where the largest has so many. Larger pages say nothing: they
// need more, and those of a program that comes in all sizes would have trees wait for the few that are small.
func (p *pool) isSeldom(points, largest int64) bool {
	now, rate := int64(0), 0.0
	for _, f := range p.fills[:min(len(p.fills), bits.Len64(uint64(largest))+1)] {
		now += f.now
		rate += f.rate
	}
	return p.idle < 0 || max(rate, float64(now)/window.Seconds()) < busyRate*float64(points)
}

// isIdle tells whether so many more points, of a tree that has so many then, would wait too long for what they take.
func (p *pool) isIdle(more, points int64) bool {
	if p.since == 0 || retained.Load()+more <= p.idle && idling.Load() <= p.idle {
		return false
	}
	for _, t := range p.trees {
		more += t.size()
		points = max(points, t.size())
	}
	return p.isSeldom(more, points)
}

// hasSpare tells whether a tree waits that a layout's pages can fill as well as another.
func (p *pool) hasSpare(l *plan.Layout) bool {
	if p.each == 0 {
		return len(p.trees) > 0
	}
	return slices.ContainsFunc(p.trees, func(t *Tree) bool { return t.Layout == l })
}

// become makes a tree one of another layout that has the same metrics. Its points are to be renewed.
func (t *Tree) become(l *plan.Layout) {
	t.had = t.had[:0]
	for i := range t.Layout.Metrics {
		t.had = append(t.had, int32(t.chosen(i).count))
	}
	t.Layout, t.lists, t.foreign = l, nil, true
}
