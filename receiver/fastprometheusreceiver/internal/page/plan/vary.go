// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// A Variation is the effect of a difference on a plan's layout: some points are absent, and there are extra ones.
type Variation struct {
	difference

	missing lineSet // lines of the plan that are not on the page
	Absent  lineSet // of these, the ones that have ended before: they have no point
	Extra   *Layout // of extra lines and of those that end; its samples are numbered after the plan's
	Ended   int     // how many of its samples are stale markers
	Carried int     // extra lines that the last page had, too
	Changes []Change
}

// A Change is what a variation changes in a metric of the plan: some points are absent, and Count extra ones follow.
type Change struct{ Metric, Absent, First, Count int32 }

// A VaryingRoom is memory for variations, made one after the other.
type VaryingRoom struct {
	Missing lineSet
	Absent  lineSet
	Gone    []*catalog.Line // lines that end
	Lost    []*catalog.Line // extra lines of the last page that this one lacks
}

// Vary works out what a difference means for a target, and counts the page's samples. It returns nil if more changes
// than some points.
func (b *Book) Vary(p *Plan, d difference, t *catalog.Identity, h *History, room *VaryingRoom) (*Variation, Tally) {
	n := p.Tally
	if p.Owners(); p.HasUnplaced { // from here on, owner is read without its lock, since it no longer changes
		return nil, n
	}
	b.number(p)
	before := b.Mark()
	for _, l := range h.Diff.Extras {
		l.Epoch = before
	}
	room.Missing, room.Absent = room.Missing.none(len(p.Lines)), room.Absent.none(len(p.Lines))
	x := &Variation{difference: d, missing: room.Missing, Absent: room.Absent}
	if !b.varyLines(p, x, t, before, &n) {
		return nil, n
	}
	if len(d.Extras) > len(p.Lines)/16 && h.Carried+x.Carried > len(p.Lines) {
		return nil, n // a plan of its own is cheaper by now
	}
	isEnding := h.Alive && !b.cfg.NoStaleMarkers
	timed, timedExtras := h.Diff.splitBits(h.Timed, len(p.Body))
	if !b.endExtras(p, h, room, before, isEnding, timedExtras) {
		return nil, n
	}
	x.Ended = len(room.Gone)
	back, ok := h.markAbsent(p, x, isEnding, timed)
	if !ok {
		return nil, n
	}
	n.Added += back
	if h.Plan != p {
		n.Added = n.Samples - n.Dropped
	}
	if !b.layExtras(p, x, room.Gone) || !x.find(p.Layout) {
		return nil, n
	}
	return x, n
}

// varyLines goes through the lines that are missing and those that came, and counts them. Extra lines of the last page
// have the epoch before. It returns false if a line changes the meaning of others.
func (b *Book) varyLines(p *Plan, x *Variation, t *catalog.Identity, before uint32, n *Tally) bool {
	now := b.Mark()
	x.difference.missing(x.missing)
	extras := x.Extras
	for _, e := range x.edits {
		gone, came := p.Lines[e.at:e.at+e.gone], extras[:e.extra]
		extras = extras[e.extra:]
		if !b.inOrder(p, &e, came) {
			return false
		}
		for i, l := range gone {
			n.add(l, -1)
			if l.Kind != catalog.DroppedLine && !p.Layout.isMissing(p.owner[int(e.at)+i], x.missing) {
				return false
			}
		}
		for _, l := range came {
			if l.Epoch == b.markEpoch || l.Epoch == now {
				return false // the line is elsewhere on the page, too
			}
			switch {
			case l.Epoch == before:
				x.Carried++
			case l.Kind == catalog.SeriesLine:
				n.Added++
			default:
			}
			l.Epoch = now
			n.add(l, 1)
			if l.Kind != catalog.DroppedLine && (!b.fits(p, l) || t.Pin == nil && l.Point.Form.Keys.Contested) {
				return false
			}
		}
	}
	return true
}

// endExtras finds the extra lines of the last page that this one lacks, and those of them that get a stale marker.
func (b *Book) endExtras(p *Plan, h *History, room *VaryingRoom, before uint32, isEnding bool, timed lineSet) bool {
	room.Gone, room.Lost = room.Gone[:0], room.Lost[:0]
	for i, l := range h.Diff.Extras {
		if l.Epoch != before {
			continue
		}
		room.Lost = append(room.Lost, l)
		if !isEnding || l.Kind != catalog.SeriesLine || timed.Has(int32(i)) {
			continue
		}
		if !b.fits(p, l) {
			return false // it did, but others have had lines of the same series since
		}
		room.Gone = append(room.Gone, l)
	}
	return true
}

// layExtras lays out the extra lines and those that end. It returns false if a series among the former has no point.
func (b *Book) layExtras(p *Plan, x *Variation, gone []*catalog.Line) bool {
	x.Extra = b.Scratch.Lay(len(p.Lines), x.Extras, nil, gone, math.MaxInt64)
	placed := 0
	for _, at := range x.Extra.Owners(len(p.Lines), len(x.Extras)) {
		if at >= 0 {
			placed++
		}
	}
	for _, l := range x.Extras {
		if l.Kind == catalog.SeriesLine {
			placed--
		}
	}
	return placed == 0
}

// SlotUse returns how a plan's page uses slots, nil if that is not known.
func (b *Book) SlotUse(p *Plan) *catalog.SlotUse {
	if !p.usesSlots {
		p.usesSlots, p.slotUse = true, b.Own.UseOf(p.Body)
	}
	return p.slotUse
}

// Replace varies a plan's layout by the points that end because slots have new values, and counts the series that are
// new. It returns nil if more changes than that.
func (b *Book) Replace(p *Plan, use *catalog.SlotUse, slots []int, room *VaryingRoom) (x *Variation, added int) {
	owner := p.Owners()
	if p.HasUnplaced {
		return nil, 0
	}
	room.Missing = room.Missing.none(len(p.Lines))
	for _, slot := range slots {
		for _, i := range use.Lines(slot) {
			room.Missing.add(i)
		}
	}
	room.Gone = room.Gone[:0]
	for word, left := range room.Missing {
		for ; left != 0; left &= left - 1 {
			i := 64*word + bits.TrailingZeros64(left)
			l := p.Lines[i]
			if l.Kind != catalog.SeriesLine {
				continue
			}
			if added++; owner[i] < 0 {
				return nil, 0
			}
			if !b.cfg.NoStaleMarkers && l.Point.HasOneOf(slots) {
				room.Gone = append(room.Gone, l)
			}
		}
	}
	x = &Variation{Extra: b.Scratch.Lay(len(p.Lines), nil, nil, room.Gone, math.MaxInt64), Ended: len(room.Gone)}
	if !x.find(p.Layout) {
		return nil, 0
	}
	return x, added
}

// add counts the samples of a line.
func (n *Tally) add(l *catalog.Line, times int) {
	n.Samples += times
	if l.Kind == catalog.DroppedLine {
		n.Dropped += times
		if l.Setting == catalog.RefusedSetting {
			n.Limited += times
		}
	}
}

// inOrder reports whether names still come in the plan's order: the first sample of a name decides its family, given
// what the page said before.
func (b *Book) inOrder(p *Plan, e *edit, came []*catalog.Line) bool {
	var room [2][8]*catalog.Name
	had, has := room[0][:0], room[1][:0]
	end := e.at + e.gone
	for i, l := range p.Lines[e.at:end] {
		if l.Kind.IsMetadata() {
			return false
		}
		if l.Kind == catalog.SeriesLine && l.Name.First == e.at+int32(i) {
			had = append(had, l.Name)
		}
	}
	see := func(l *catalog.Line) {
		if l.Kind != catalog.DroppedLine && l.Name.First >= e.at && !slices.Contains(has, l.Name) {
			has = append(has, l.Name)
		}
	}
	for _, l := range came {
		if l.Kind.IsMetadata() || l.Kind == catalog.SeriesLine && l.Name.Epoch != b.markEpoch || len(has) > 32 {
			return false
		}
		see(l)
	}
	if next := p.Lines[end]; !next.Kind.IsMetadata() && next.Kind != catalog.DroppedLine {
		if next.Name.First == end {
			had = append(had, next.Name)
		}
		see(next)
	}
	return slices.Equal(had, has)
}

// fits places a line that the plan lacks in one of its families, if it makes a point of its own, or a part of one.
func (b *Book) fits(p *Plan, l *catalog.Line) bool {
	at := p.owner[l.Name.First]
	if at < 0 {
		return false
	}
	of := p.Layout.Points[at].Family.Base
	if of.Custom || of.Kind == pmetric.MetricTypeExponentialHistogram {
		return false
	}
	if l.Point == nil || l.Point.Family.Base != of {
		b.Place(l, of, catalog.Classic)
	}
	switch l.Role {
	case catalog.ValueRole, catalog.CountRole:
		return !l.Point.IsSeveral()
	case catalog.BucketRole, catalog.SumRole, catalog.CreatedRole:
		return true
	default:
		return false
	}
}

// markAbsent marks points whose stale marker was sent, or that get none because their samples had timestamps, and
// records the metrics that have some. It returns how many series are back that the last page lacked; ok is false if
// only a part of a point had a timestamp.
func (h *History) markAbsent(p *Plan, x *Variation, isEnding bool, timed lineSet) (back int, ok bool) {
	body := int32(len(p.Body))
	for _, e := range h.Diff.edits {
		for i := e.at; i < e.at+e.gone; i++ {
			if x.missing.Has(i) {
				x.Absent.add(i)
			} else if p.Lines[i].Kind == catalog.SeriesLine {
				back++
			}
		}
	}
	for _, e := range x.edits {
		for i := e.at; i < min(e.at+e.gone, body); i++ {
			l := p.Lines[i]
			if l.Kind == catalog.SeriesLine && timed.Has(i) != timed.Has(p.Layout.Anchor(p.owner[i])) {
				return 0, false
			}
			if !isEnding || timed.Has(i) {
				x.Absent.add(i)
			}
			if l.Kind != catalog.SeriesLine || !x.Absent.Has(i) {
				continue
			}
			if at := p.owner[i]; p.Layout.Anchor(at) == i {
				x.remove(p.Layout, at)
			}
		}
	}
	return back, true
}

// remove records that a point is absent.
func (x *Variation) remove(l *Layout, point int32) {
	if n := len(x.Changes); n > 0 {
		if last := &x.Changes[n-1]; l.Metrics[last.Metric].has(point) {
			last.Absent++
			return
		}
	}
	x.Changes = append(x.Changes, Change{Metric: l.metricOf(point), Absent: 1})
}

func (m *PlacedMetric) has(point int32) bool { return point >= m.First && point < m.First+m.Points }

// find finds the metrics of a layout that change. It returns false if a metric has nothing left, or would be new.
func (x *Variation) find(l *Layout) bool {
	for k := range x.Extra.Metrics { // so that no search is needed: they come in any order
		x.Extra.Metrics[k].Family.Slot = int32(k)
	}
	left := len(x.Extra.Metrics)
	for i := 0; i < len(l.Metrics) && left > 0; i++ {
		f := l.Metrics[i].Family
		if k := int(f.Slot); k < len(x.Extra.Metrics) && x.Extra.Metrics[k].Family == f {
			m := &x.Extra.Metrics[k]
			x.Changes = append(x.Changes, Change{Metric: int32(i), First: m.First, Count: m.Points})
			left--
		}
	}
	if left > 0 {
		return false
	}
	slices.SortStableFunc(x.Changes, func(a, b Change) int { return cmp.Compare(a.Metric, b.Metric) })
	merged := x.Changes[:0]
	for _, c := range x.Changes {
		if n := len(merged); n > 0 && merged[n-1].Metric == c.Metric {
			merged[n-1].Absent += c.Absent
			if c.Count > 0 {
				merged[n-1].First, merged[n-1].Count = c.First, c.Count
			}
			continue
		}
		merged = append(merged, c)
	}
	x.Changes = merged
	for _, c := range merged {
		if c.Absent == l.Metrics[c.Metric].Points && c.Count == 0 {
			return false
		}
	}
	return true
}

// Without varies the layout of lines by the points of lines that are gone. It returns nil if a point continues without
// some of its lines, or a metric ends.
func (p *Pass) Without(l *Layout, lines, gone []*catalog.Line) *Variation {
	mark := p.Mark()
	for _, l := range lines {
		if l.Point != nil {
			l.Point.Epoch = mark
		}
	}
	for _, l := range gone {
		if l.Point.Epoch == mark {
			return nil
		}
	}
	x := &Variation{Extra: p.Lay(len(lines), nil, nil, gone, math.MaxInt64)}
	if !x.find(l) {
		return nil
	}
	return x
}

// metricOf returns the metric of a point.
func (l *Layout) metricOf(point int32) int32 {
	i, _ := slices.BinarySearchFunc(l.Metrics, point+1, func(m PlacedMetric, p int32) int { return cmp.Compare(m.First+m.Points, p) })
	return int32(i)
}

// Anchor returns the sample without which there is no point.
func (l *Layout) Anchor(point int32) int32 {
	p := l.Placed(int(point))
	if p.isGrouped() {
		return l.Groups[p.At].Count
	}
	return p.At
}

// isMissing reports whether no sample of a point is left.
func (l *Layout) isMissing(point int32, missing lineSet) bool {
	all := point >= 0
	if all {
		l.samples(int(point), func(i int32) { all = all && missing.Has(i) })
	}
	return all
}

// RenumberAfter renumbers a layout's groups to follow those of another.
func (l *Layout) RenumberAfter(other *Layout) {
	for i := range l.Points {
		if l.Placed(i).isGrouped() {
			l.At[i] += int32(len(other.Groups))
		}
	}
}
