// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// A cohort is the targets of a job whose labels have the same names and whose lines are read in the same way. They
// share a catalog of lines, plans of pages and trees to fill.
type cohort struct {
	catalog.Catalog
	plan.Book

	job      *Job
	key      string
	switches switches
	targets  atomic.Int32

	mu      sync.Mutex           // guards the catalog, the book and what scrapes hold
	pools   tree.Pools           // have a lock of their own
	reading map[*Scrape]struct{} // scrapes in progress that hold lines
	told    int64                // what the Room was told that the catalog takes
	swept   int64                // what the last sweep left
	vain    int                  // consecutive searches for targets' own values that found nothing
	learned atomic.Int64         // when a line was last added; 0 once what serves to add lines was given back
	looked  atomic.Int64         // when a line was last looked for; 0 once the tables were put aside
}

// switches are what a target's labels may override.
type switches struct{ native, classic, custom bool }

func newCohort(j *Job, key string, ls []labels.Label, variables int, sw switches) *cohort {
	c := &cohort{job: j, key: key, switches: sw, reading: map[*Scrape]struct{}{}}
	c.Catalog.Init(&j.rules, ls, variables)
	c.Book.Init(&c.Catalog, j.book)
	c.Ended = func(p *plan.Plan) { c.pools.Leave(p.Layout) }
	return c
}

// adopt makes p the target's plan.
func (c *cohort) adopt(t *Target, p *plan.Plan) {
	c.Adopt(&t.History, p)
	t.Turned = false
	c.sweep()
}

// sweep forgets what neither a plan nor a scrape in progress uses, once that may be much.
func (c *cohort) sweep() {
	if c.NeedsSweep() || c.isCramped() {
		c.Sweep(c.inUse())
		c.swept = c.Held()
	}
	c.Slim()
	c.settleUp()
}

// calm is how long no page of a cohort must have had a new line, or one that had to be looked for, before memory that serves
// these is given back.
const calm = time.Minute

// rest gives back what serves to add lines, if none was added for long, and what serves to find them, if none was looked
// for, and no page is being read that looks for some.
func (c *cohort) rest(at int64) {
	learned, looked := c.learned.Load(), c.looked.Load()
	if !isCalm(learned, at) && !isCalm(looked, at) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if isCalm(learned, at) && c.learned.CompareAndSwap(learned, 0) { // or else a line has just come
		c.Rest()
	}
	if isCalm(looked, at) && len(c.reading) == 0 && c.looked.CompareAndSwap(looked, 0) {
		c.PutTablesAside(c.inUse())
	}
}

func isCalm(since, at int64) bool { return since != 0 && at-since >= calm.Milliseconds() }

// inUse visits the lines and points that are in use, page by page.
func (c *cohort) inUse() (lines iter.Seq[[]*catalog.Line], points iter.Seq[[]*catalog.Point]) {
	lines = func(yield func([]*catalog.Line) bool) {
		for s := range c.reading {
			if !yield(s.held) {
				return
			}
		}
		c.HeldLines(yield)
	}
	return lines, c.HeldPoints
}

// hold keeps a line that a scrape found by its text until the scrape has ended: no plan may contain it yet, or any
// more.
func (c *cohort) hold(s *Scrape, l *catalog.Line) *catalog.Line {
	if s.held = append(s.held, l); len(s.held) == 1 {
		c.reading[s] = struct{}{}
	}
	return l
}

// charge charges a scrape for what the cohort holds more than before.
func (c *cohort) charge(s *Scrape, held int64) {
	s.left -= c.Held() - held
	c.settleUp()
}

// stats adds what the cohort holds to s.
func (c *cohort) stats(s *Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Targets += int(c.targets.Load())
	s.Plans += len(c.Plans)
	n := c.Counts()
	s.Lines += n.Lines
	s.Points += n.Points
	s.Bytes += c.Held() + c.Bytes()
}
