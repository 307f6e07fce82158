// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"slices"
	"sync"

	"github.com/prometheus/prometheus/model/histogram"
)

// A plan is a page, values aside: its lines in order, the report's last, and what they come to. Targets with the same
// page share it. It never changes but for its trees.
type plan struct {
	hash    uint64
	lines   []*line
	said    map[string]metadata // by the page
	repeats int                 // lines that were there before
	newest  uint32              // the highest number of a line
	samples int                 // lines that are samples
	dropped int                 // and of those, dropped by relabeling
	limited int                 // or for the series limit

	layout *layout // nil until a page has come out as the plan says
	owner  []int32 // of each sample its point, when somebody asked
	loose  bool    // a sample has none: parts of a point that may yet come

	pure      bool // a target that knows nothing yet would make the same of the page
	steady    bool // and one that knows what the page says, and nothing else
	contested bool // lines might be the same series for another target
	conds     []*condition
	refs      int // targets, under the cohort's lock
	pool      *pool
	mu        sync.Mutex // of owner
}

// take returns a tree to fill, if one is free.
func (p *plan) take() *tree { return p.pool.take(p.layout) }

// body returns the lines without those of the report.
func (p *plan) body(report int) []*line { return p.lines[:len(p.lines)-report] }

// noTime is the timestamp of a sample that has none of its own.
const noTime = -1 << 63

// A nativeValue is a native histogram, of integers or of floats.
type nativeValue struct {
	h  *histogram.Histogram
	fh *histogram.FloatHistogram
}

// A pass reads the lines of a whole page, once they are known, under the cohort's lock.
type pass struct {
	*cohort

	epoch    uint32
	target   *Target
	most     int64               // that the cohort may hold, when the page is not to take more
	was      []*line             // the target's last page
	said     map[string]metadata // by the page up to here, over what the target knew before
	families map[familyKey]*base
	// contested says that lines might be the same series for the target, and not for others.
	contested bool
}

// begin starts a pass. The lines of the target's last page bear the epoch before it until the page has them.
func (p *pass) begin(t *Target) {
	p.cohort.epoch += 2
	p.epoch, p.target = p.cohort.epoch, t
	p.marked = nil
	if p.was = t.restated; p.was == nil {
		p.was = t.last()
	}
	if t.turned {
		p.was = p.turn(t, p.was)
	}
	p.contested = false
	for _, l := range p.was {
		l.epoch = p.epoch - 1
	}
	p.most = math.MaxInt64
	p.said, p.families = cleared(p.said), cleared(p.families)
}

// mostCleared bounds the maps that are used again: one that was large once would stay so.
const mostCleared = 1 << 12

func cleared[K comparable, V any](m map[K]V) map[K]V {
	if len(m) > mostCleared {
		return map[K]V{}
	}
	clear(m)
	return m
}

// metadata looks a family up as the page stands.
func (p *pass) metadata(family string) (metadata, bool) {
	if md, ok := p.said[family]; ok {
		return md, true
	}
	return p.target.known(family)
}

func (p *pass) apply(l *line) {
	m := p.metas[l]
	md, ok := p.metadata(l.name.final)
	if !ok {
		md.typ = unknownType
	}
	switch m.kind {
	case typeLine:
		md.typ = m.typ
	case helpLine:
		md.help = m.text
	default:
		md.unit = m.text
	}
	p.said[l.name.final] = md
}

// page resolves the lines of a page and counts them. Afterwards each line's number is that of its first sample.
func (p *pass) page(lines []*line, times []int64, latest int64, natives map[int32]nativeValue) (c counts) {
	for i, l := range lines {
		switch l.kind {
		case typeLine, helpLine, unitLine:
			p.apply(l)
			continue
		case droppedLine:
			c.samples++
			c.dropped++
			if l.setting == refusedSetting {
				c.limited++
			}
			continue
		case seriesLine:
			c.samples++
		default:
		}
		if l.epoch == p.epoch {
			c.repeats++
			if times == nil || times[i] == noTime {
				c.ignored++
			}
			continue
		}
		isNew := l.epoch != p.epoch-1 && !p.target.failed.has(p.target, l)
		l.epoch, l.number = p.epoch, int32(i)
		switch {
		case times != nil && times[i] > latest:
			c.late++
		case isNew && l.kind == seriesLine:
			c.added++
		default:
		}
		as := classic
		if v, ok := natives[int32(i)]; ok {
			as = v.representation()
		}
		if b := p.base(l.name, as); l.point == nil || l.point.family.base != b {
			p.place(l, b, as)
			if c.placed++; p.held() > p.most {
				return c
			}
		}
		if q := l.point; q != nil && (q.form.keys.contested || q.family.resource.isNamed()) {
			p.contested = true
		}
	}
	return c
}

type counts struct {
	samples, dropped, limited, late, added, placed int

	repeats int // of a line that was there before
	ignored int // of those, the ones without a timestamp: they are not taken
}

func (v nativeValue) representation() native {
	if v.h != nil && v.h.Schema == histogram.CustomBucketsSchema || v.fh != nil && v.fh.Schema == histogram.CustomBucketsSchema {
		return custom
	}
	return exponential
}

// plan returns the plan of a page that was just passed.
func (p *pass) plan(lines []*line, c counts) *plan {
	h := uint64(len(lines))
	for _, l := range lines {
		id := uint64(l.id)<<8 | uint64(l.role)
		if l.point != nil {
			id ^= uint64(l.point.family.id) << 32
		}
		h = (h ^ id) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	for ; ; h++ {
		q := p.plans[h]
		if q == nil {
			break
		}
		if slices.Equal(q.lines, lines) {
			return q
		}
	}
	q := &plan{
		hash: h, lines: slices.Clone(lines),
		repeats: c.repeats, samples: c.samples, dropped: c.dropped, limited: c.limited, contested: p.contested,
	}
	p.cohort.epoch++
	for _, l := range lines {
		q.newest = max(q.newest, l.id)
		if cond := l.name.cond; cond != nil && cond.epoch != p.cohort.epoch {
			cond.epoch = p.cohort.epoch
			q.conds = append(q.conds, cond)
		}
	}
	p.plans[h] = q
	return q
}

// lay builds the layout of lines, the samples of which are numbered from first on, and of the markers of lines that are
// gone, which come after them.
func (p *pass) lay(first int, lines []*line, times []int64, gone []*line, latest int64) *layout {
	p.cohort.epoch++
	b := &p.builder
	b.reset(p.cohort.epoch, first+len(lines), &p.bounds)
	for i, l := range lines {
		if l.kind != seriesLine && l.kind != reportLine {
			continue
		}
		time := int64(noTime)
		if times != nil {
			time = times[i]
		}
		if time == noTime && first == 0 && int(l.number) != i {
			continue // exposed before: the first counts
		}
		if time > latest {
			continue
		}
		b.add(l, first+i, time)
	}
	for i, l := range gone {
		b.add(l, first+len(lines)+i, noTime)
	}
	l := b.finish()
	if p.job.isLarge(len(lines)) || p.job.isLarge(len(l.points)) {
		*b = builder{}
	}
	if p.job.isLarge(len(l.points)) {
		p.order(l)
	}
	return l
}

// adopt makes a plan the target's.
func (c *cohort) adopt(t *Target, p *plan) {
	c.differ(t, difference{})
	t.carried = 0
	t.turned, t.restated = false, nil
	if t.plan == p {
		return
	}
	p.refs++
	c.abandon(t.plan)
	t.plan, c.latest = p, p
	c.sweep()
	c.slim()
}

func (c *cohort) abandon(p *plan) {
	if p == nil {
		return
	}
	if p.refs--; p.refs == 0 {
		delete(c.plans, p.hash)
		if p.pool != nil {
			c.leave(p.pool)
		}
		if c.marked == p {
			c.marked = nil
		}
		if c.latest == p {
			c.latest = nil
		}
	}
}
