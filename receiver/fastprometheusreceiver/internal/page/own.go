// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// learning is what a page teaches about the values that are its target's own.
type learning struct {
	held  []*catalog.Line // found by their text
	fresh int             // lines that were not known
	since uint32          // the highest number of a line before the first that was looked for

	learned  bool     // values were taken from another target's plan
	mixed    bool     // lines may have values that the page has shown to be the target's own since
	renamed  []string // the target's own values, where some that are new take the place of others
	joins    bool     // the page is as ever, and is to share its lines with others that came since
	searched bool     // the page was looked through
	found    []string // the target's own values, by that
}

// learn matches a line of another target's plan, and takes the values that stand where the target has none yet for its own.
func (s *Scrape) learn(b []byte, l *catalog.Line) int {
	t := s.target
	own, end, learned := t.Own, 0, false
	for before, slot := range l.Parts {
		if len(b)-end < len(before) || string(b[end:end+len(before)]) != before {
			return 0
		}
		if end += len(before); slot < 0 {
			break
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
				return 0 // another slot of the label has it
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

// ownLength returns the length of the value that b starts with, 0 if it cannot be the target's own.
func ownLength(b []byte) int {
	n := bytes.IndexByte(b[:min(len(b), catalog.LongestOwn+1)], '"')
	if n <= 0 || bytes.ContainsAny(b[:n], "\\\n\x00") || !utf8.Valid(b[:n]) {
		return 0
	}
	return n
}

// hasValue tells whether another slot of the same label has a value.
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

// mix finds out whether what was learned may be on lines that have no slot for it: those of a plan that tells of several things, some
// of which have slots.
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

// renames finds out whether what the page tells of that is new takes the place of what is gone.
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

// isFresh tells whether so many of a page's lines are new that a value which is on them all could be the target's own.
func (s *Scrape) isFresh(lines []*catalog.Line) bool {
	c := s.target.cohort
	if s.fresh < catalog.FewFresh && !s.joins || s.target.Pin != nil || c.Rules.IsMapped || c.targets.Load() < 2 || c.IsLarge(len(lines)) {
		return false
	}
	return s.joins || catalog.OwnPart*s.fresh > countSeries(lines)
}

// join finds out whether a page that is as planned was the first of its kind, and another one has come since that tells of what is its target's own.
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

// isStrange tells whether nearly all of a page's lines are new.
func (s *Scrape) isStrange(lines []*catalog.Line) bool { return 8*s.fresh > 7*countSeries(lines) }

func countSeries(lines []*catalog.Line) (n int) {
	for _, l := range lines {
		if l.Kind == catalog.SeriesLine {
			n++
		}
	}
	return n
}

// settleOwn finds out what is the target's own, and restates the lines of its page, and of its last, by that.
func (s *Scrape) settleOwn(lines []*catalog.Line) []*catalog.Line {
	t := s.target
	c := t.cohort
	was := t.Own
	if !s.mixed && !s.isAmple(lines) {
		return lines
	}
	defer c.charge(s, c.Held())
	if s.renamed != nil {
		t.Own = s.renamed
		c.Own.Count(&t.Identity)
		t.Version++
		t.Restated, lines = c.Own.RestateRenamed(&t.Identity, t.Last(), lines, s.held, was)
		return s.exchange(lines)
	}
	own := s.ownValues(lines)
	if !s.mixed && slices.Equal(own, was) {
		return lines
	}
	t.Own = own
	c.Own.Count(&t.Identity)
	t.Version++
	t.Restated = c.Own.RestateAll(&t.Identity, t.Last(), was)
	return s.exchange(c.Own.RestateAll(&t.Identity, lines, was))
}

// isAmple tells whether there is memory for what the lines are now, and what they would be, which is there together for a while.
func (s *Scrape) isAmple(lines []*catalog.Line) bool {
	return 3*s.size+mostWeight*int64(len(lines)) <= s.left
}

// findsOwn tells whether a page of which many lines are new may tell of values that are the target's own, and were not.
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

// ownValues returns what is the target's own by its page.
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

// findOwn looks at each label of a page.
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

// isRenewed tells whether some things that a page tells of came since its plan was made.
func (s *Scrape) isRenewed(lines []*catalog.Line) bool {
	n := 0
	for _, l := range lines {
		if s.target.Plan != nil && s.target.Plan.IsOlder(l) {
			n++
		}
	}
	return n >= catalog.FewFresh
}

// A search says when the lines of a page are looked at for what is the target's own, which takes as long as to read them. On pages of
// which many lines are new scrape after scrape, and tell of nothing that is, most searches are left out.
type search struct {
	vain int    // pages in a row
	last uint64 // scrape that had many new lines
}

const (
	vainSearches = 4  // in a row, before most are left out
	searchEvery  = 16 // pages from then on
	// vainOfAll is how many searches in a row, whoever's, were in vain when a target's next need no longer show that.
	vainOfAll = 32
)

// isDue tells whether a page with many new lines is looked at, when so many searches in a row found nothing on the pages of whatever target.
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
