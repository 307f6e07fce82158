// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// Same reports whether lines that a pass has placed would have the same place given what a target knows.
func (p *Pass) Same(t *catalog.Identity, h *History, lines []*catalog.Line, natives map[int32]NativeValue) bool {
	p.Begin(t, h)
	return p.Page(lines, nil, 0, natives).placed == 0
}

// failedSeries are hashes of the texts of series that only failed pages had, since the last good one.
type failedSeries map[uint64]struct{}

func (f failedSeries) HasHash(hash uint64) bool {
	_, ok := f[hash]
	return ok
}

func (f failedSeries) has(t *catalog.Identity, l *catalog.Line) bool {
	return len(f) > 0 && f.HasHash(t.SeriesHash(l))
}

// With adds the series of another failed page. If there are many more than the last good page had, only those of the
// new page are kept.
func (f failedSeries) With(hashes []uint64, good int) failedSeries {
	if len(hashes) == 0 {
		return f
	}
	if f == nil || len(f)+len(hashes) > 2*good+1000 {
		f = make(failedSeries, len(hashes))
	}
	for _, h := range hashes {
		f[h] = struct{}{}
	}
	return f
}

// Gone appends the lines whose series the target had and the page of this pass lacks.
func (p *Pass) Gone(dst []*catalog.Line) []*catalog.Line {
	h := p.history
	if !h.Alive || h.Plan == nil || p.cfg.NoStaleMarkers {
		return dst
	}
	var points []int32
	for i, l := range p.LastPage {
		if l.Kind != catalog.SeriesLine || l.Epoch == p.Epoch || h.Timed != nil && h.Timed[i/64]&(1<<(i%64)) != 0 {
			continue
		}
		l.Epoch = p.Epoch // only once
		if points == nil {
			points = h.points()
		}
		if points[i] < 0 {
			continue // it had no series
		}
		if p.end(l); l.Role != catalog.NoRole && l.Role != catalog.TargetInfoRole {
			dst = append(dst, l)
		}
	}
	return dst
}

// end places a line whose series ends under the metadata that the page has now.
func (p *Pass) end(l *catalog.Line) {
	as := l.Native()
	b := p.Base(l.Name, as)
	if as == catalog.Classic && !Grouped(b.Kind) && b.Name != l.Name.Final {
		if was := p.Was(l.Name); was != nil && Grouped(was.Kind) {
			b = was // a part of what is no histogram any more: it ends as such, and not as a gauge that nobody has seen
		}
	}
	if l.Point == nil || l.Point.Family.Base != b {
		p.Place(l, b, as)
	}
	if as == catalog.Classic && l.Role == catalog.NoRole && b.Kind == pmetric.MetricTypeHistogram && l.Name.Final == b.Name {
		// The name is now that of a histogram, which has no such part: the line ends as a native histogram.
		p.Place(l, p.Base(l.Name, catalog.Exponential), catalog.Exponential)
	}
}

// points returns the point of each line of the target's last page, -1 if it was part of none. Points that the plan does
// not have are 0.
func (h *History) points() []int32 {
	owner := h.Plan.Owners()
	if h.Diff.IsEmpty() {
		return owner
	}
	var out []int32
	i := int32(0)
	for _, e := range h.Diff.edits {
		out = append(append(out, owner[i:e.at]...), make([]int32, e.extra)...)
		i = e.at + e.gone
	}
	return append(out, owner[i:]...)
}
