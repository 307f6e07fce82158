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

// A pool keeps idle trees for all plans that have the same metrics, whatever their points. So targets with the same
// metrics about different things share one tree for each concurrent scrape, instead of one for each plan.
type pool struct {
	key   uint64
	plans int // guarded by the lock of Pools

	mu            sync.Mutex
	trees         []*Tree
	most          int            // the most trees it keeps
	plansWithTree int            // how many plans have a tree of their own, as long as they are few
	alike         map[uint64]int // how many plans have as many points of each metric, by a hash of these numbers
	frequent      int            // how many of these numbers are manyAlike at least
	sizesWithTree int            // how many of them have a tree of their own, where plans are many
	later         int            // trees in addition to these, where many come back at once
	abandoned     bool

	since     pcommon.Timestamp // start of the window; 0 until something was filled
	fills     []fills           // by the number of points of a page, in powers of two
	idleLimit int64             // limit of idling
	idling    int64             // points in trees that are seldom filled, if the pool kept them
	largest   int64             // points of the largest page
}

// fills counts the points filled for pages of one size: in this window, and per second in the last one.
type fills struct {
	now  int64
	rate float64
}

// idling is how many points would wait in trees that are seldom filled, if all pools kept theirs. In a fleet with more
// such pages than there is room for, keeping a few of these trees would take memory for next to nothing.
var idling atomic.Int64

// retained counts the points of idle trees. Past fewRetained, a layout keeps one idle tree; past mostRetained none: the
// garbage collector takes them, and the metrics are made anew.
var retained atomic.Int64

const (
	fewRetained  = 1 << 15
	mostRetained = 1 << 17
	// IdlePoints is the default of Job.Idle.
	IdlePoints = 1 << 13
	// busyRate is how often a second each point of a tree must be filled for the tree not to be idle: saving that work
	// is then worth the memory.
	busyRate = 2
	// window is the time over which fills are counted.
	window = 20 * time.Second
	// FewPlans is up to how many plans each have a tree of their own, which has the plan's points and needs new values
	// only.
	FewPlans = 8
	// manyAlike is how many plans with as many points of each metric have trees of their own, beside other plans: each may
	// leave the attributes as they are ([Tree.mayDefer]).
	manyAlike = 4
	// laterTrees is how many more trees are kept where many come back at once, out of a batch.
	laterTrees = 1 << 8
)

// Pools has a pool for each plan in use, shared by those with the same metrics.
type Pools struct {
	mu     sync.Mutex
	shared map[uint64]*pool // by the hash of their metrics
	of     map[*plan.Layout]*pool
}

// Join adds a plan with this layout.
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
		p = &pool{key: key, alike: map[uint64]int{}}
		ps.shared[key] = p
	}
	ps.of[l] = p
	p.plans++
	p.bound(l, 1)
}

// Leave removes a plan with this layout, and drops the trees that no other plan uses.
func (ps *Pools) Leave(l *plan.Layout) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.of[l]
	if p == nil {
		return
	}
	delete(ps.of, l)
	if p.plans--; p.plans > 0 {
		p.bound(l, -1)
		p.dropTreeOf(l)
		return
	}
	delete(ps.shared, p.key)
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.trees) > 0 {
		p.remove(0)
	}
	p.abandoned = true
	p.countIdling()
}

// alike is equal for layouts of a pool whose metrics have as many points.
func alike(l *plan.Layout) (key uint64) {
	for i := range l.Metrics {
		key = (key ^ uint64(l.Metrics[i].Points)) * 0x9e3779b97f4a7c15
		key ^= key >> 29
	}
	return key
}

// Take returns an idle tree, if there is one. It may be given back.
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

// Keeps records that metrics are made of a layout, and reports whether a tree of them will be kept.
func (ps *Pools) Keeps(l *plan.Layout, at pcommon.Timestamp, j *Job) bool {
	p := ps.pool(l)
	return p != nil && p.keeps(int64(len(l.Points)), at, j)
}

func (ps *Pools) pool(l *plan.Layout) *pool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.of[l]
}

// Waiting returns the number of pools, and of idle trees in them.
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

// bound limits the trees after a plan with a layout has come (1) or gone (-1).
func (p *pool) bound(l *plan.Layout, more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := alike(l)
	n := p.alike[size] + more
	if p.alike[size] = n; n == 0 {
		delete(p.alike, size)
	}
	if more > 0 && n == manyAlike || more < 0 && n == manyAlike-1 {
		p.frequent += more
	}
	p.largest = 0                  // the largest page may be that of a plan which has ended
	p.most = runtime.GOMAXPROCS(0) // the most scrapes that can be filling trees at once
	if p.plansWithTree, p.sizesWithTree = 0, 0; p.plans <= FewPlans {
		p.plansWithTree = p.plans
		p.most += p.plans - 1
	} else {
		p.sizesWithTree = min(p.frequent, FewPlans)
		p.most += max(p.sizesWithTree-1, 0)
	}
	for len(p.trees) > p.most+p.later {
		p.remove(0)
	}
}

// dropTreeOf drops the trees of a plan that has ended, if each remaining plan has one.
func (p *pool) dropTreeOf(l *plan.Layout) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.trees) - 1; i >= 0 && len(p.trees) > p.plans; i-- {
		if p.trees[i].Layout == l {
			p.remove(i)
		}
	}
}

// remove takes a tree out of the pool.
func (p *pool) remove(i int) *Tree {
	t := p.trees[i]
	p.trees = slices.Delete(p.trees, i, i+1)
	retained.Add(-t.size())
	return t
}

// size is how many points a tree has, including stowed ones.
func (t *Tree) size() int64 { return int64(len(t.Layout.Points) + t.stowed) }

// suits reports whether a tree suits a page of the given number of points better than another one: it has enough
// points, and the fewest beyond that.
func (t *Tree) suits(points int64, other *Tree) bool {
	a, b := t.size(), other.size()
	if a >= points && b >= points {
		return a < b
	}
	return a > b
}

// take returns an idle tree, preferably one with the layout's points. As long as each plan may have its own, it leaves
// another plan's tree alone: that would get the attributes of this page's points and stow those that the page lacks,
// its plan would take a third plan's tree, and so on, until each tree had as many points as the largest page.
func (p *pool) take(l *plan.Layout) *Tree {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, like, points := -1, -1, int64(len(l.Points))
	for i, t := range slices.Backward(p.trees) { // start with the last one returned, of which most is in the CPU's caches
		if t.Layout == l {
			return p.remove(i)
		}
		if like < 0 && t.Layout.HasAsManyPoints(l) && t.Layout.HasMetricsOf(l) {
			like = i
		}
		if (found < 0 || t.suits(points, p.trees[found])) && t.Layout.HasMetricsOf(l) {
			found = i
		}
	}
	if like >= 0 && p.plansWithTree == 0 {
		return p.remove(like)
	}
	own := p.plansWithTree
	if p.sizesWithTree > 0 && p.alike[alike(l)] >= manyAlike {
		own = p.sizesWithTree
	}
	if found < 0 || len(p.trees) < own && retained.Load()+points <= mostRetained {
		return nil
	}
	if t := p.trees[found]; points > t.size() && p.isIdle(points-t.size(), points) {
		return nil // it would grow, and then not be kept
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

// keeps counts the points that are filled, and reports whether a tree of that size is kept.
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
	p.idleLimit, p.largest = j.Idle, max(p.largest, points)
	if j.Later {
		p.later = laterTrees
	}
	p.countIdling()
	return retained.Load() <= mostRetained && !p.isIdle(points, points)
}

// countIdling computes how many trees the pool would have.
func (p *pool) countIdling() {
	points := p.largest * int64(max(p.plansWithTree, 1))
	if p.abandoned || !p.isSeldom(points, p.largest) {
		points = 0
	}
	idling.Add(points - p.idling)
	p.idling = points
}

// isSeldom reports whether trees of the given size are filled too seldom for the memory that they take, in a pool whose
// largest page has largest points. Larger pages do not count: they need larger trees, and pages of all sizes would keep
// trees for the few small ones.
func (p *pool) isSeldom(points, largest int64) bool {
	now, rate := int64(0), 0.0
	for _, f := range p.fills[:min(len(p.fills), bits.Len64(uint64(largest))+1)] {
		now += f.now
		rate += f.rate
	}
	return p.idleLimit < 0 || max(rate, float64(now)/window.Seconds()) < busyRate*float64(points)
}

// isIdle reports whether the pool's trees would be idle if they had that many points more, for pages of the given
// number of points.
func (p *pool) isIdle(more, points int64) bool {
	if p.since == 0 || retained.Load()+more <= p.idleLimit && idling.Load() <= p.idleLimit {
		return false
	}
	for _, t := range p.trees {
		more += t.size()
		points = max(points, t.size())
	}
	return p.isSeldom(more, points)
}

// hasSpare reports whether another idle tree can serve the layout's pages.
func (p *pool) hasSpare(l *plan.Layout) bool {
	if p.plansWithTree == 0 {
		return len(p.trees) > 0
	}
	return slices.ContainsFunc(p.trees, func(t *Tree) bool { return t.Layout == l })
}

// become gives a tree another layout with the same metrics. All its points must be renewed.
func (t *Tree) become(l *plan.Layout) {
	if !t.foreign {
		t.pointCounts = t.pointCounts[:0]
		for i := range t.Layout.Metrics {
			t.pointCounts = append(t.pointCounts, int32(t.chosen(i).count))
		}
	}
	t.Layout, t.lists, t.foreign = l, nil, true
}
