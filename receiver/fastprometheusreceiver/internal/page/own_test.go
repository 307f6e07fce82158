// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// routes returns a page on which half of the lines have one code, and all have the application, if one is given.
func routes(app string, scrape int) string {
	var b strings.Builder
	if app != "" {
		app = fmt.Sprintf(",app=%q", app)
	}
	for i := range 60 {
		fmt.Fprintf(&b, "requests_%d{route=\"/%d\",code=\"%d\"%s} %d\n", i/4, i, 200+300*(i%2), app, 100*i+scrape)
	}
	return b.String()
}

// A code on half of a page's lines is not the target's own value if other targets have it, too. On the first page of a
// kind that cannot be known: it stays as it is, so that all similar targets share it.
func TestTwinsShareWhatTheFirstHas(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	var targets []*Target
	for i := range 6 {
		targets = append(targets, testTarget(j, i))
	}
	for range 3 { // the first target was scraped before
		show(targets[0], start, typeText, routes("", 0), 1<<20)
	}
	for n := range 2 {
		for _, target := range targets {
			require.NoError(t, show(target, start.Add(time.Duration(n)*time.Second), typeText, routes("", n), 1<<20).Err)
		}
	}
	require.Equal(t, 1, j.Stats().Plans)
	require.Less(t, j.Stats().Lines, 70, "60 of the page, and the report's")
}

// The first target with a value of its own gets the shared lines of later targets with its next page. No series ends
// because of that.
func TestTheFirstOfItsKindJoinsOthers(t *testing.T) {
	t.Parallel()
	oracle, j := newTestJob(t, Config{Scrape: testScrapeConfig()}), newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
	var targets, alone []*Target
	for i := range 5 {
		targets, alone = append(targets, testTarget(j, i)), append(alone, testTarget(oracle, i))
	}
	for n, plans := range []int{2, 1, 1} {
		at := start.Add(time.Duration(n) * time.Second)
		for i := range targets {
			page := routes(fmt.Sprint("app-", i), n)
			expected, got := show(alone[i], at, typeText, page, 1<<20), show(targets[i], at, typeText, page, 1<<20)
			require.NoError(t, got.Err)
			require.Equal(t, canon(expected.Metrics), canon(got.Metrics), "scrape %d of target %d", n, i)
			require.Equal(t, expected.Added, got.Added)
			got.Release()
		}
		require.Equal(t, plans, j.Stats().Plans, "scrape %d", n)
	}
	require.False(t, targets[0].IsFirst())
}

// If page after page has new lines without a value of the target's own, most are not searched; but one is from time to
// time, and all are again after a search that found something, or after a page with few new lines.
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
