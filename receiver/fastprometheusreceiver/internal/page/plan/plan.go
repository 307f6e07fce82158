// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// A Plan is a page without its values: its lines in order, the report's last, and their meaning. Targets with the same
// page share it. Only its trees change.
type Plan struct {
	Tally // of its pages, when no line is new

	hash  uint64
	Lines []*catalog.Line
	Body  []*catalog.Line             // Lines without those of the report
	Said  map[string]catalog.Metadata // metadata of the page
	// SaidBefore says that Said is shared with other plans.
	SaidBefore bool
	Repeats    int    // lines that occurred earlier on the page
	newest     uint32 // the highest ID of a line

	Layout      *Layout // nil until a page matched the plan
	owner       []int32 // the point of each sample, once needed
	HasUnplaced bool    // some samples have no point: they are parts of a point that is not complete yet

	Pure      bool // the page means the same to a target that knows no metadata
	Steady    bool // and to one that knows the page's metadata, and no other
	Contested bool // lines might be the same series for another target
	conds     []*catalog.Condition
	refs      int         // number of targets
	isShared  atomic.Bool // several targets have used it
	mu        sync.Mutex  // guards owner and text
	text      *Text       // once needed

	slotUse   *catalog.SlotUse // once needed; guarded by the catalog's lock
	usesSlots bool             // slotUse was needed
}

// IsOlder reports whether the plan was made before the line.
func (p *Plan) IsOlder(l *catalog.Line) bool { return l.ID > p.newest }

// A Pass goes through the lines of a whole page, once they are known.
type Pass struct {
	*Book
	catalog.PageMetadata

	identity *catalog.Identity
	history  *History
	Most     int64           // the size up to which the catalog may grow, if the page's memory is limited
	LastPage []*catalog.Line // the target's last page
	// Contested says that lines which are different series for others might be the same series for the target.
	Contested bool
}

// Begin starts a pass. The lines of the target's last page have the epoch before, until the page has them.
func (p *Pass) Begin(t *catalog.Identity, h *History) {
	c := p.Catalog
	before := c.MarkLines()
	p.PageMetadata.Begin(c, c.MarkLines(), h.known)
	p.identity, p.history = t, h
	if p.LastPage = h.Restated; p.LastPage == nil {
		p.LastPage = h.Last()
	}
	if t.Turned {
		p.LastPage = c.Turn(t, p.LastPage)
	}
	p.Contested = false
	for _, l := range p.LastPage {
		l.Epoch = before
	}
	p.Most = math.MaxInt64
}

// Page resolves the lines of a page and counts them. Afterwards each line has the number of its first sample.
func (p *Pass) Page(lines []*catalog.Line, times []int64, latest int64, natives map[int32]NativeValue) (c Counts) {
	for i, l := range lines {
		switch l.Kind {
		case catalog.TypeLine, catalog.HelpLine, catalog.UnitLine:
			p.Apply(l)
			continue
		case catalog.DroppedLine:
			c.Samples++
			c.Dropped++
			if l.Setting == catalog.RefusedSetting {
				c.Limited++
			}
			continue
		case catalog.SeriesLine:
			c.Samples++
		default:
		}
		if l.Epoch == p.Epoch {
			c.repeats++
			if times == nil || times[i] == NoTime {
				c.Ignored++
			}
			continue
		}
		isNew := l.Epoch != p.Epoch-1 && !p.history.Failed.has(p.identity, l)
		l.Epoch, l.Number = p.Epoch, int32(i)
		switch {
		case times != nil && times[i] > latest:
			c.Late++
		case isNew && l.Kind == catalog.SeriesLine:
			c.Added++
		default:
		}
		as := catalog.Classic
		if v, ok := natives[int32(i)]; ok {
			as = v.Representation()
		}
		if b := p.Base(l.Name, as); l.Point == nil || l.Point.Family.Base != b {
			p.Place(l, b, as)
			if c.placed++; p.Held() > p.Most {
				return c
			}
		}
		if q := l.Point; q != nil && (q.Form.Keys.Contested || q.Family.Resource.IsNamed()) {
			p.Contested = true
		}
	}
	return c
}

// Counts are the numbers of samples on a page.
type Counts struct {
	Tally

	Late    int // too far in the future
	placed  int
	repeats int // lines that occurred earlier on the page
	Ignored int // of those, the ones without a timestamp: they are not used
}

// Plan returns the plan of the page that was just passed.
func (p *Pass) Plan(lines []*catalog.Line, c Counts) *Plan {
	h := uint64(len(lines))
	for _, l := range lines {
		id := uint64(l.ID)<<8 | uint64(l.Role)
		if l.Point != nil {
			id ^= uint64(l.Point.Family.ID) << 32
		}
		h = (h ^ id) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	for ; ; h++ {
		q := p.Plans[h]
		if q == nil {
			break
		}
		if slices.Equal(q.Lines, lines) {
			return q
		}
	}
	catalog.Share(lines)
	q := &Plan{
		hash: h, Lines: slices.Clone(lines),
		Repeats: c.repeats, Tally: Tally{Samples: c.Samples, Dropped: c.Dropped, Limited: c.Limited}, Contested: p.Contested,
	}
	q.Body = q.Lines[:len(lines)-len(p.ReportLines)]
	mark := p.Mark()
	for _, l := range lines {
		q.newest = max(q.newest, l.ID)
		if cond := l.Name.Cond; cond != nil && cond.Epoch != mark {
			cond.Epoch = mark
			q.conds = append(q.conds, cond)
		}
	}
	p.Plans[h] = q
	return q
}

// Lay builds the layout of lines, whose samples are numbered from first on, and of the stale markers of lines that are
// gone, which come after them.
func (p *Pass) Lay(first int, lines []*catalog.Line, times []int64, gone []*catalog.Line, latest int64) *Layout {
	b := &p.builder
	b.reset(p.Mark(), first+len(lines), &p.Bounds)
	for i, l := range lines {
		if l.Kind != catalog.SeriesLine && l.Kind != catalog.ReportLine {
			continue
		}
		time := int64(NoTime)
		if times != nil {
			time = times[i]
		}
		if time == NoTime && first == 0 && int(l.Number) != i {
			continue // repeated: the first one counts
		}
		if time > latest {
			continue
		}
		b.add(l, first+i, time)
	}
	for i, l := range gone {
		b.add(l, first+len(lines)+i, NoTime)
	}
	l := b.finish()
	if p.IsLarge(len(lines)) || p.IsLarge(len(l.Points)) {
		*b = builder{}
	}
	if p.IsLarge(len(l.Points)) {
		p.order(l)
	}
	return l
}

// A Tally counts the samples of a page.
type Tally struct {
	Samples int
	Dropped int // by relabeling, or by the series limit
	Limited int // by the series limit
	Added   int // of series that the last page lacked
}

// HasAsManyPoints reports whether two layouts with the same metrics have the same number of points of each.
func (l *Layout) HasAsManyPoints(other *Layout) bool {
	return len(l.Points) == len(other.Points) &&
		slices.EqualFunc(l.Metrics, other.Metrics, func(a, b PlacedMetric) bool { return a.Points == b.Points })
}

// HasMetricsOf reports whether two layouts have the same metrics.
func (l *Layout) HasMetricsOf(other *Layout) bool {
	return l == other || slices.Equal(l.Scopes, other.Scopes) &&
		slices.EqualFunc(l.Resources, other.Resources, func(a, b PlacedResource) bool { return a.Resource == b.Resource }) &&
		slices.EqualFunc(l.Metrics, other.Metrics, func(a, b PlacedMetric) bool { return a.Family == b.Family && a.Scope == b.Scope })
}

// IsComplete reports whether list, unless nil, has all points of a metric and no others.
func (l *Layout) IsComplete(m *PlacedMetric, list []int32) bool {
	if list == nil {
		return true
	}
	for _, at := range list {
		if at < 0 || int(at) >= len(l.Points) {
			return false
		}
	}
	return len(list) == int(m.Points)
}
