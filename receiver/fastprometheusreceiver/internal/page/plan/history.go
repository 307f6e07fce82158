// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// A History is what is known of a target's last pages, to compare the next one with.
type History struct {
	Plan    *Plan
	Diff    difference // between the last page and the plan
	Carried int        // extra lines that consecutive pages had, since the plan was made
	Settled bool       // the plan needs no pass: nothing else that the target knows can change its meaning
	// Restated has the lines of the last page for the target's current own values.
	Restated []*catalog.Line
	Timed    []uint64     // lines of the last page that had timestamps, and so get no stale marker; nil if none
	Alive    bool         // the last scrape succeeded
	Past     bool         // there was a scrape
	Failed   failedSeries // since the last good one

	Iteration uint64
	good      uint64                      // the last scrape that succeeded
	Said      map[string]catalog.Metadata // metadata of the last page; shared with its plan
	Lingering map[string]lingering
}

// lingering metadata was said by an earlier page.
type lingering struct {
	catalog.Metadata

	last uint64
}

// MetadataScrapes is the number of successful scrapes after its last mention for which metadata is kept.
const MetadataScrapes = 10

// Succeed records that the scrape succeeded.
func (h *History) Succeed() { h.Alive, h.Past, h.Failed, h.good = true, true, nil, h.Iteration }

// known returns what earlier pages said about a family.
func (h *History) known(family string) (catalog.Metadata, bool) {
	if md, ok := h.Said[family]; ok {
		return md, true
	}
	l, ok := h.Lingering[family]
	return l.Metadata, ok
}

// Learn replaces what the last page said by what this one said. It reports whether that can make a difference to the
// next page.
func (h *History) Learn(said, shared map[string]catalog.Metadata) (changed bool) {
	for family, md := range h.Said {
		if _, ok := said[family]; !ok {
			if h.Lingering == nil {
				h.Lingering = map[string]lingering{}
			}
			h.Lingering[family] = lingering{md, h.good}
			changed = true
		}
	}
	differs := !Same(h.Said, said)
	changed = changed || differs
	switch {
	case Same(shared, said): // even if the target has a copy: one is enough for all targets that learned a page at the same time
		h.Said = shared
	case differs:
		h.Said = fitted(said)
	}
	for family := range h.Lingering {
		if _, ok := said[family]; ok {
			delete(h.Lingering, family)
		}
	}
	return h.Forget() || changed
}

// fitted copies metadata into a map without spare room: a clone would be as large as the map of the largest page.
func fitted(said map[string]catalog.Metadata) map[string]catalog.Metadata {
	fit := make(map[string]catalog.Metadata, len(said))
	maps.Copy(fit, said)
	return fit
}

// Same reports whether two pages have the same metadata.
func Same(a, b map[string]catalog.Metadata) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// Forget drops metadata that lingered long enough, and reports whether there was any.
func (h *History) Forget() (changed bool) {
	for family, l := range h.Lingering {
		if h.Iteration-l.last > MetadataScrapes {
			delete(h.Lingering, family)
			changed = true
		}
	}
	return changed
}

// Follows reports whether the plan's lines have the plan's meaning given what the target knows.
func (h *History) Follows(p *Plan) bool {
	if h.Plan != nil {
		return h.Plan == p && h.Settled
	}
	return p.Pure && h.Said == nil && len(h.Lingering) == 0
}

// Last returns the lines of the target's last page.
func (h *History) Last() []*catalog.Line {
	if h.Plan == nil {
		return nil
	}
	body := h.Plan.Body
	if h.Diff.IsEmpty() {
		return body
	}
	return h.Diff.Apply(nil, body)
}

// Points visits the points of the target's last page. A point may be visited more than once.
func (h *History) Points(yield func(*catalog.Point)) {
	if h.Plan == nil || h.Plan.Layout == nil {
		return
	}
	owners := h.points()
	lines := h.Restated
	if lines == nil {
		lines = h.Last()
	}
	for i, l := range lines {
		if l.Kind == catalog.SeriesLine && l.Point != nil && owners[i] >= 0 {
			yield(l.Point)
		}
	}
}
