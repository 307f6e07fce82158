// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// learning is what a page shows about its target's own label values.
type learning struct {
	held  []*catalog.Line // lines found by their text
	fresh int             // lines that were new
	since uint32          // the highest line number before the first lookup

	learned  bool     // values were learned from another target's plan
	mixed    bool     // lines read earlier may contain values that the page has since shown to be the target's own
	renamed  []string // the target's own values, after new ones have replaced others
	joins    bool     // the page is as planned, and is to share its lines with others that came since
	searched bool     // the page was searched for own values
	found    []string // the target's own values that the search found
}

// learn matches a line of another target's plan. Where a slot of the target is empty, it takes the line's value for the
// target's own.
func (s *Scrape) learn(b []byte, l *catalog.Line) int {
	t := s.target
	own, end, learned := t.Own, 0, false
	for before, slot := range l.Parts {
		if len(b)-end < len(before) || string(b[end:end+len(before)]) != before {
			return 0
		}
		if end += len(before); slot < 0 {
			continue
		}
		n := 0
		if slot < len(own) {
			n = len(own[slot])
		}
		if n == 0 {
			if n = ownLength(b[end:]); n == 0 || t.cohort.Rules.IsTooLong(string(b[end:end+n])) {
				return 0
			}
			if s.hasValue(own, slot, b[end:end+n]) {
				return 0 // it belongs to another slot of the label
			}
			if !learned {
				own, learned = append(make([]string, 0, max(len(own), slot+1)), own...), true
			}
			for len(own) <= slot {
				own = append(own, "")
			}
			own[slot] = string(b[end : end+n])
		}
		if len(b)-end < n || string(b[end:end+n]) != own[slot] {
			return 0
		}
		end += n
	}
	if learned {
		t.Own, s.own = own, own
		s.learned = true
		s.mixed = s.mixed || s.strayed
	}
	return end
}

// ownLength returns the length of the value at the start of b, 0 if it cannot be the target's own.
func ownLength(b []byte) int {
	n := bytes.IndexByte(b[:min(len(b), catalog.LongestOwn+1)], '"')
	if n <= 0 || bytes.ContainsAny(b[:n], "\\\n\x00") || !utf8.Valid(b[:n]) {
		return 0
	}
	return n
}

// hasValue reports whether another slot of the same label has this value.
func (s *Scrape) hasValue(own []string, slot int, value []byte) bool {
	for other, v := range own {
		if other == slot || v != string(value) {
			continue
		}
		c := s.target.cohort
		c.mu.Lock()
		isApart := c.Own.AreApart(slot, other)
		c.mu.Unlock()
		if !isApart {
			return true
		}
	}
	return false
}

// mix finds out whether a value that was learned may also occur on lines without a slot for it. That is possible with a
// plan about several things, only some of which have slots.
func (s *Scrape) mix() {
	if !s.learned || s.mixed {
		return
	}
	c := s.target.cohort
	c.mu.Lock()
	defer c.mu.Unlock()
	s.mixed = c.Own.HasSeveral(&s.target.Identity)
	c.Own.Count(&s.target.Identity)
}

// renames finds out whether values that are new on the page replace values that are gone.
func (s *Scrape) renames() bool {
	t := s.target
	if s.fresh < catalog.FewFresh || !s.strayed || s.borrowed || s.mixed || len(t.Own) < 2 || t.Turned || t.Pin != nil {
		return false
	}
	c := t.cohort
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Own.HasSeveral(&t.Identity) {
		s.renamed = c.Own.Renamed(&t.Identity, s.lines, s.held)
	}
	return s.renamed != nil
}

// isFresh reports whether enough of a page's lines are new for a value which all of them have to be possibly the
// target's own.
func (s *Scrape) isFresh(lines []*catalog.Line) bool {
	c := s.target.cohort
	if s.fresh < catalog.FewFresh && !s.joins || s.target.Pin != nil || c.Rules.IsMapped || c.targets.Load() < 2 || c.IsLarge(len(lines)) {
		return false
	}
	return s.joins || catalog.OwnPart*s.fresh > countSeries(lines)
}

// join finds out whether a page that is as planned was the first of its kind, and another target has since shown the
// same page with other values of its own.
func (s *Scrape) join() bool {
	t := s.target
	if !t.IsFirst() || t.Plan == nil || s.plan != t.Plan || t.Turned {
		return false
	}
	c := t.cohort
	c.mu.Lock()
	defer c.mu.Unlock()
	s.joins = c.Own.IsFollowed(&t.Identity)
	return s.joins
}

// isStrange reports whether nearly all of a page's lines are new.
func (s *Scrape) isStrange(lines []*catalog.Line) bool { return 8*s.fresh > 7*countSeries(lines) }

func countSeries(lines []*catalog.Line) (n int) {
	for _, l := range lines {
		if l.Kind == catalog.SeriesLine {
			n++
		}
	}
	return n
}

// settleOwn determines the target's own values, and rewrites the lines of its page, and of its last page, to use slots
// for them.
func (s *Scrape) settleOwn(lines []*catalog.Line) []*catalog.Line {
	t := s.target
	c := t.cohort
	was := t.Own
	if !s.mixed && !s.isAmple(lines) {
		return lines
	}
	defer c.charge(s, c.Held())
	c.learned.Store(s.at)
	if s.renamed != nil {
		t.Own = s.renamed
		c.Own.Count(&t.Identity)
		t.Version++
		t.Restated, lines = c.Own.RestateRenamed(&t.Identity, t.Last(), lines, s.held, was)
		return s.replaceLines(lines)
	}
	own := s.ownValues(lines)
	if !s.mixed && slices.Equal(own, was) {
		return lines
	}
	t.Own = own
	c.Own.Count(&t.Identity)
	t.Version++
	t.Restated = c.Own.RestateAll(&t.Identity, t.Last(), was)
	return s.replaceLines(c.Own.RestateAll(&t.Identity, lines, was))
}

// isAmple reports whether there is memory for the lines before and after they are rewritten, since both exist for a
// while.
func (s *Scrape) isAmple(lines []*catalog.Line) bool {
	return 3*s.size+mostWeight*int64(len(lines)) <= s.left
}

// findsOwn reports whether a page with many new lines may show values that are the target's own and have no slot yet.
func (s *Scrape) findsOwn(lines []*catalog.Line) bool {
	if !s.isFresh(lines) {
		return false
	}
	if !s.isAmple(lines) {
		return true
	}
	t := s.target
	c := t.cohort
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.Held()
	s.found, s.searched = s.ownValues(lines), true
	c.charge(s, held)
	return !slices.Equal(s.found, t.Own)
}

// ownValues returns the target's own values as its page shows them.
func (s *Scrape) ownValues(lines []*catalog.Line) []string {
	if s.searched {
		return s.found
	}
	t := s.target
	c := t.cohort
	since := s.since
	if since == 0 {
		since = c.LastID
	}
	isFresh, hasSeveral := s.isFresh(lines), c.Own.HasSeveral(&t.Identity)
	if !isFresh && (!hasSeveral || !s.isRenewed(lines)) {
		return t.Own
	}
	if !s.joins && !t.search.isDue(t.Iteration, c.vain) {
		return t.Own
	}
	own := s.findOwn(lines, since, hasSeveral)
	if found := !slices.Equal(own, t.Own); found {
		t.search.vain, c.vain = 0, 0
	} else {
		t.search.vain++
		c.vain++
	}
	return own
}

// findOwn searches each label of a page for own values.
func (s *Scrape) findOwn(lines []*catalog.Line, since uint32, hasSeveral bool) []string {
	t := s.target
	c := t.cohort
	if !hasSeveral {
		if own := c.Own.Of(&t.Identity, lines, false); own != nil && c.Own.Shares(&t.Identity, lines, own, false, since) {
			return own
		}
		if !s.isStrange(lines) || !c.Own.AreStrangers(lines) {
			return nil
		}
	}
	if own := c.Own.Of(&t.Identity, lines, true); own != nil && c.Own.Shares(&t.Identity, lines, own, true, since) {
		return own
	}
	return nil
}

// isRenewed reports whether several of the page's lines are newer than the target's plan.
func (s *Scrape) isRenewed(lines []*catalog.Line) bool {
	n := 0
	for _, l := range lines {
		if s.target.Plan != nil && s.target.Plan.IsOlder(l) {
			n++
		}
	}
	return n >= catalog.FewFresh
}

// A search decides when the lines of a page are searched for the target's own values, which takes as long as reading
// them. For pages with many new lines at every scrape, none of which shows an own value, most searches are skipped.
type search struct {
	vain int    // consecutive pages without a find
	last uint64 // the last scrape with many new lines
}

const (
	vainSearches = 4  // consecutive searches without a find, before most are skipped
	searchEvery  = 16 // one page in this many is searched from then on
	// vainOfAll is the number of consecutive searches without a find, by all targets together, from which on one such
	// search of a target is enough.
	vainOfAll = 32
)

// isDue reports whether a page with many new lines is searched. vain is the number of consecutive searches by all
// targets that found nothing.
func (r *search) isDue(scrape uint64, vain int) bool {
	if scrape > r.last+1 {
		r.vain = 0
	}
	r.last = scrape
	most := vainSearches
	if vain >= vainOfAll {
		most = 1
	}
	if r.vain < most || r.vain%searchEvery == 0 {
		return true
	}
	r.vain++
	return false
}
