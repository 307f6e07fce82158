// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// A pool has trees that wait to be filled, for all plans that have the same metrics, whatever their points. Targets that show
// the same metrics about things of their own so share a tree for each scrape that may be under way, not one for each plan.
type pool struct {
	key   uint64
	plans int // under the cohort's lock

	mu        sync.Mutex
	trees     []*tree
	most      int // trees
	abandoned bool
}

// retained counts the points of trees that wait to be filled. Past the bound those of pages that are like no other go to the
// collector, and such pages are built anew.
var retained atomic.Int64

const (
	retainedPoints = 1 << 16
	// fewPlans is for how many plans a tree is kept for each: it then has the plan's points, and needs values alone.
	fewPlans = 8
)

// pool returns the pool of a layout's plan.
func (c *cohort) pool(l *layout) *pool {
	key := uint64(len(l.metrics))
	for i := range l.metrics {
		key = (key ^ uint64(l.metrics[i].family.id)) * 0x9e3779b97f4a7c15
		key ^= key >> 29
	}
	p := c.pools[key]
	if p == nil {
		p = &pool{key: key}
		c.pools[key] = p
	}
	p.plans++
	p.bound()
	return p
}

func (p *pool) bound() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = runtime.GOMAXPROCS(0) // as many as scrapes can be filling
	if p.plans <= fewPlans {
		p.most += p.plans - 1
	}
	for len(p.trees) > p.most {
		p.remove(0)
	}
}

// remove takes out a tree.
func (p *pool) remove(i int) *tree {
	t := p.trees[i]
	p.trees = slices.Delete(p.trees, i, i+1)
	retained.Add(-int64(len(t.layout.points)))
	return t
}

// leave drops the trees when there is no plan any more that has use for them.
func (c *cohort) leave(p *pool) {
	if p.plans--; p.plans > 0 {
		p.bound()
		return
	}
	delete(c.pools, p.key)
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.trees) > 0 {
		p.remove(0)
	}
	p.abandoned = true
}

// take returns a tree to fill, if one is free: best one that has a layout's points.
func (p *pool) take(l *layout) *tree {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := -1
	for i, t := range p.trees {
		if t.layout == l {
			return p.remove(i)
		}
		if t.layout.hasMetricsOf(l) {
			found = i
		}
	}
	if found < 0 {
		return nil
	}
	return p.remove(found)
}

// give takes a tree back.
func (p *pool) give(t *tree) {
	n := int64(len(t.layout.points))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.abandoned || len(p.trees) >= p.most || retained.Load() > retainedPoints && len(p.trees) > 0 || retained.Load() > 2*retainedPoints {
		return
	}
	p.trees = append(p.trees, t)
	retained.Add(n)
}

// hasMetricsOf tells whether two layouts have the same metrics.
func (l *layout) hasMetricsOf(other *layout) bool {
	return l == other || slices.Equal(l.scopes, other.scopes) &&
		slices.EqualFunc(l.resources, other.resources, func(a, b placedResource) bool { return a.resource == b.resource }) &&
		slices.EqualFunc(l.metrics, other.metrics, func(a, b placedMetric) bool { return a.family == b.family && a.scope == b.scope })
}

// become makes a tree one of another layout that has the same metrics. Its points are to be renewed.
func (t *tree) become(l *layout) {
	t.had = t.had[:0]
	for i := range t.layout.metrics {
		t.had = append(t.had, int32(t.chosen(i).count))
	}
	t.layout, t.lists, t.foreign = l, nil, true
}

// over chooses the same points in place of as many others, as far as these go.
func (k choice) over(had int) choice {
	k.kept, k.isNew = min(had, k.count), true
	k.drop, k.renew = nil, nil
	if had > k.count {
		k.drop = make([]bool, had)
		for i := k.count; i < had; i++ {
			k.drop[i] = true
		}
	}
	return k
}
