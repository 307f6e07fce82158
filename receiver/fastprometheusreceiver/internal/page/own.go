// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

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
			n = bytes.IndexByte(b[end:], '"')
			if n <= 0 || n > catalog.LongestOwn || bytes.IndexByte(b[end:end+n], '\\') >= 0 || !utf8.Valid(b[end:end+n]) || t.cohort.Rules.IsTooLong(string(b[end:end+n])) {
				return 0
			}
			if !learned {
				own, learned = append(make([]string, 0, catalog.MostOwn), own...), true
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
		t.Own = own
		s.mixed = s.mixed || s.strayed
	}
	return end
}

// isFresh tells whether so many of a page's lines are new that a value which is on them all could be the target's own.
func (s *Scrape) isFresh(lines []*catalog.Line) bool {
	c := s.target.cohort
	if s.fresh < catalog.FewFresh || s.target.Pin != nil || c.Rules.IsMapped || c.targets.Load() < 2 || c.IsLarge(len(lines)) {
		return false
	}
	series := 0
	for _, l := range lines {
		if l.Kind == catalog.SeriesLine {
			series++
		}
	}
	return catalog.OwnPart*s.fresh > series
}

// settleOwn finds out what is the target's own, and restates the lines of its page, and of its last, by that.
func (s *Scrape) settleOwn(lines []*catalog.Line) []*catalog.Line {
	t := s.target
	c := t.cohort
	own, was := t.Own, t.Own
	if !s.mixed && 3*s.size+mostWeight*int64(len(lines)) > s.left {
		return lines // what it has now, and would have, is there together for a while
	}
	defer c.charge(s, c.Held())
	if s.isFresh(lines) {
		if own = c.OwnValues(&t.Identity, lines); own != nil && !c.Shares(&t.Identity, lines, own, s.since) {
			own = nil
		}
	}
	if !s.mixed && slices.Equal(own, was) {
		return lines
	}
	t.Own = own
	t.Version++
	t.Restated = c.RestateAll(&t.Identity, t.Last(), was)
	s.lines = c.RestateAll(&t.Identity, lines, was)
	s.strayed = true
	return s.lines
}
