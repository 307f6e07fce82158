// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// A History is what a target's last pages came to: what the next is compared with.
type History struct {
	Plan    *Plan
	Diff    difference // of the last page from the plan
	Carried int        // extras that pages had in common, since the plan was made
	Settled bool       // the plan needs no pass: nothing the target knows besides it can change what it means
	// Restated has the lines of the last page by the values that the target has now.
	Restated []*catalog.Line
	Timed    []uint64     // lines of the last page that had timestamps of their own, and so no end to mark; nil if none
	Alive    bool         // the last scrape went well
	Past     bool         // there was a scrape
	Failed   failedSeries // since then

	Iteration uint64
	good      uint64                      // the last scrape that went well
	Said      map[string]catalog.Metadata // by the last page; shared with its plan
	Lingering map[string]lingering
}

// lingering metadata was said by an earlier page.
type lingering struct {
	catalog.Metadata

	last uint64
}

// MetadataScrapes is for how many successful scrapes metadata outlives its last mention.
const MetadataScrapes = 10

// Succeed notes that the scrape went well.
func (h *History) Succeed() { h.Alive, h.Past, h.Failed, h.good = true, true, nil, h.Iteration }

// known returns what earlier pages said of a family.
func (h *History) known(family string) (catalog.Metadata, bool) {
	if md, ok := h.Said[family]; ok {
		return md, true
	}
	l, ok := h.Lingering[family]
	return l.Metadata, ok
}

// Learn replaces what the last page said by what this one did. It tells whether that makes a difference to the next.
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
	case Same(shared, said): // also where the target has a copy: of many targets that learnt a page together one is enough
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

// fitted copies what a page said into a map that is no larger than that takes: a clone has the room of the one it was made of, which is
// that of the largest page.
func fitted(said map[string]catalog.Metadata) map[string]catalog.Metadata {
	fit := make(map[string]catalog.Metadata, len(said))
	maps.Copy(fit, said)
	return fit
}

// Same tells whether two pages have said the same.
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

// Forget drops metadata that lingered long enough, and tells whether there was any.
func (h *History) Forget() (changed bool) {
	for family, l := range h.Lingering {
		if h.Iteration-l.last > MetadataScrapes {
			delete(h.Lingering, family)
			changed = true
		}
	}
	return changed
}

// Follows tells whether what the target knows makes of a plan's lines what the plan does.
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
