// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A scrape's memory goes back to the pool in which the next page of its size looks, for large and small pages. A page
// that has become small does not put a large page's memory into the pool of small ones.
func TestScrapesOfLargePagesStayApart(t *testing.T) {
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true}), 1)
	at := start
	show := func(series int) (began, left *sync.Pool) {
		t.Helper()
		var b strings.Builder
		for i := range series {
			fmt.Fprintf(&b, "some_things{number=\"%d\"} %d\n", i, i)
		}
		at = at.Add(15 * time.Second)
		samples := target.usual()
		s := target.begin(at, textFormat)
		require.Equal(t, samples >= manySamples, s.large)
		require.NoError(t, s.Feed([]byte(b.String())))
		e := ending{Scrape: s} // the same steps as End, without releasing the memory
		r := e.decide()
		require.NoError(t, r.Err)
		began, left = scrapesOf(samples), s.pool()
		s.release()
		r.Release()
		return began, left
	}
	for _, series := range []int{10, manySamples - 200, manySamples - 10, manySamples - 7, manySamples + 1, 2 * manySamples, 10} {
		var began, left *sync.Pool
		for range 5 {
			began, left = show(series)
		}
		require.Same(t, began, left, "%d series: the next page looks where this one was left", series)
	}
	for _, series := range []int{manySamples + 500, 3 * manySamples} {
		for range 5 {
			show(series)
		}
		began, left := show(10)
		require.Same(t, &largeScrapes, began)
		require.Same(t, &largeScrapes, left, "a small page has left what a large one made to small ones")
		for range 5 {
			began, left = show(10)
			require.Same(t, began, left)
		}
	}
}
