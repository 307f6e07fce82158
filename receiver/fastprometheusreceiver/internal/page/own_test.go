// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import "testing"

// Where page after page has new lines that tell of nothing that is a target's own, most are not looked at; but from time to time
// one is, and all are again once one told of something, or had few new lines.
func TestMostSearchesInVainAreLeftOut(t *testing.T) {
	t.Parallel()
	var r search
	scrape := uint64(100)
	ofAll := 0
	searches := func(pages int, found bool) (n int) {
		for range pages {
			if scrape++; r.isDue(scrape, ofAll) {
				n++
				if r.vain++; found {
					r.vain = 0
				}
			}
		}
		return n
	}
	if n := searches(vainSearches, false); n != vainSearches {
		t.Errorf("%d of the first %d pages are looked at", n, vainSearches)
	}
	if n := searches(10*searchEvery, false); n < 9 || n > 11 {
		t.Errorf("%d of %d later pages are looked at, want about one of %d", n, 10*searchEvery, searchEvery)
	}
	for range searchEvery { // until the next search, which finds something
		if searches(1, true) == 1 {
			break
		}
	}
	if n := searches(vainSearches, false); n != vainSearches {
		t.Errorf("%d of %d pages after a find are looked at", n, vainSearches)
	}
	searches(searchEvery+1, false)
	scrape++ // a page with few new lines
	if n := searches(vainSearches, false); n != vainSearches {
		t.Errorf("%d of %d pages after one with few new lines are looked at", n, vainSearches)
	}
	scrape++
	ofAll = vainOfAll
	if n := searches(vainSearches, false); n != 1 {
		t.Errorf("%d of %d pages are looked at where nobody's told of anything", n, vainSearches)
	}
}
