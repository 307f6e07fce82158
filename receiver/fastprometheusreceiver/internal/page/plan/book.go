// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"

// A Config is the part of a job's configuration that its plans depend on.
type Config struct {
	// Round is how many points about the same things are in consecutive parts of a large page's metrics.
	Round int
	// NoStaleMarkers leaves out the stale markers of series that vanish.
	NoStaleMarkers bool
	// Sharing is the number of targets that must share a plan for it to have a Text.
	Sharing int
}

// A Book has the plans of targets that share a catalog. The caller must hold the catalog's lock.
type Book struct {
	*catalog.Catalog

	cfg       *Config
	Plans     map[uint64]*Plan
	Ended     func(*Plan) // called with a plan that no target uses any more
	latest    *Plan
	marked    *Plan // whose lines know their numbers, unless other lines were marked since markEpoch
	markEpoch uint32
	differing map[*History]struct{}         // from their plans
	said      []map[string]catalog.Metadata // what recent pages said, each different from the others; the most recent first
	Scratch   Pass
	builder   builder
}

// Init makes an empty book over a catalog.
func (b *Book) Init(c *catalog.Catalog, cfg *Config) {
	*b = Book{Catalog: c, cfg: cfg, Plans: map[uint64]*Plan{}, differing: map[*History]struct{}{}, Ended: func(*Plan) {}}
	b.Scratch.Book = b
}

// IsLarge reports whether metrics of the given number of points are made in parts.
func (b *Book) IsLarge(points int) bool { return points > 2*b.cfg.Round }

// Borrow returns the plan that was adopted last, if its lines mean the same to the target. It must be abandoned.
func (b *Book) Borrow(t *catalog.Identity) *Plan {
	if b.latest == nil || !t.MeetsAll(b.latest.conds) {
		return nil
	}
	b.latest.refs++
	return b.latest
}

// Adopt makes a plan the one with which a target's pages are compared.
func (b *Book) Adopt(h *History, p *Plan) {
	if h.Plan != nil && h.Plan != p {
		b.Lose(h.Diff.missingCount())
	}
	b.Differ(h, difference{})
	h.Carried = 0
	h.Restated = nil
	if h.Plan == p {
		return
	}
	if p.refs++; p.refs >= b.cfg.Sharing {
		p.isShared.Store(true)
	}
	b.Abandon(h.Plan)
	h.Plan, b.latest = p, p
}

// Abandon ends one use of a plan.
func (b *Book) Abandon(p *Plan) {
	if p == nil {
		return
	}
	if p.refs--; p.refs > 0 {
		return
	}
	delete(b.Plans, p.hash)
	if b.marked == p {
		b.marked = nil
	}
	if b.latest == p {
		b.latest = nil
	}
	b.Ended(p)
}

// Leave ends all uses of a target.
func (b *Book) Leave(h *History) {
	if h.Plan != nil && h.Plan.refs == 1 {
		b.Lose(len(h.Plan.Body))
	}
	b.Abandon(h.Plan)
	b.Differ(h, difference{})
	h.Plan, h.Settled, h.Past, h.Alive, h.Failed = nil, false, false, false, nil
}

// Differ records how a target's page differs from its plan.
func (b *Book) Differ(h *History, d difference) {
	h.Diff = d
	if d.IsEmpty() {
		delete(b.differing, h)
	} else {
		b.differing[h] = struct{}{}
	}
}

const (
	// mostSaid limits the different pages whose metadata is shared across plans.
	mostSaid = 16
	// mostShared is up to how many metrics: metadata is held a little longer than the pages are in use.
	mostShared = 1 << 12
)

// SharedMetadata returns an earlier page's metadata if it equals that of this page, or nil. Where each target has a plan of its
// own, because its series come and go, all pages still have the same metadata.
func (b *Book) SharedMetadata(said map[string]catalog.Metadata) map[string]catalog.Metadata {
	for i, m := range b.said {
		if Same(m, said) {
			copy(b.said[1:i+1], b.said[:i])
			b.said[0] = m
			return m
		}
	}
	return nil
}

// RememberMetadata keeps the metadata of a page, different from that of earlier ones, for others to share.
func (b *Book) RememberMetadata(said map[string]catalog.Metadata) {
	if len(said) == 0 || len(said) > mostShared {
		return
	}
	if len(b.said) < mostSaid {
		b.said = append(b.said, nil)
	}
	copy(b.said[1:], b.said)
	b.said[0] = said
}

// number sets the number of each line of a plan, and of each name that of its first line.
func (b *Book) number(p *Plan) {
	if b.marked == p && b.markEpoch == b.LinesEpoch {
		return
	}
	b.marked, b.markEpoch = p, b.MarkLines()
	for i, l := range p.Lines {
		l.Epoch, l.Number = b.markEpoch, int32(i)
		if (l.Kind == catalog.SeriesLine || l.Kind == catalog.ReportLine) && l.Name.Epoch != b.markEpoch {
			l.Name.Epoch, l.Name.First = b.markEpoch, int32(i)
		}
	}
}

// HeldLines visits the lines of plans, and further lines of pages.
func (b *Book) HeldLines(yield func([]*catalog.Line) bool) {
	for h := range b.differing {
		if !yield(h.Diff.Extras) {
			return
		}
	}
	for _, p := range b.Plans {
		if !yield(p.Lines) {
			return
		}
	}
}

// HeldPoints visits the points of plans.
func (b *Book) HeldPoints(yield func([]*catalog.Point) bool) {
	for _, p := range b.Plans {
		if p.Layout != nil && !yield(p.Layout.Points) {
			return
		}
	}
}

// Bytes estimates what plans take.
func (b *Book) Bytes() (n int64) {
	for _, p := range b.Plans {
		n += 8*int64(len(p.Lines)) + p.textBytes() + p.slotUse.Bytes()
		if !p.SaidBefore {
			n += catalog.SaidBytes * int64(len(p.Said))
		}
		if p.Layout != nil {
			n += p.Layout.bytes()
		}
	}
	for h := range b.differing {
		n += 8*int64(len(h.Diff.Extras)) + 12*int64(len(h.Diff.edits))
	}
	return n
}
