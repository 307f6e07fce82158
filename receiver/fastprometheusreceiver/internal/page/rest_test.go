// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// unlikePage returns a page of an exporter that shares no metric with any other. Most of its metrics have few series.
func unlikePage(exporter, metrics int) []byte {
	var b strings.Builder
	r := rand.New(rand.NewPCG(uint64(exporter), 31))
	for m := range metrics {
		name := fmt.Sprintf("exporter_%d_metric_%d", exporter, m)
		fmt.Fprintf(&b, "# TYPE %s gauge\n", name)
		for range 1 + r.IntN(12) {
			b.WriteString(name)
			for l := range 1 + m%4 {
				fmt.Fprintf(&b, "%slabel_%d=\"value-%d\"", []string{"{", ","}[min(l, 1)], l, r.IntN(1<<(8+r.IntN(12))))
			}
			fmt.Fprintf(&b, "} %d\n", r.IntN(100))
		}
	}
	return []byte(b.String())
}

// What is needed only for adding lines is freed when no more lines arrive: a minute later pages take less memory, and
// the counts say so.
func TestMemoryOfPagesThatRest(t *testing.T) {
	racetest.Sequential(t)
	const exporters, metrics = 60, 150
	var pages [][]byte
	for i := range exporters {
		pages = append(pages, unlikePage(i, metrics))
	}
	series, text := textOf(pages)
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	before := heap()
	var targets []*Target
	for i := range pages {
		targets = append(targets, testTarget(j, i))
	}
	kept := func(at time.Time) float64 {
		for range 2 {
			for i, page := range pages {
				r := showBytes(targets[i], at, typeText, page)
				require.NoError(t, r.Err)
				r.Release()
			}
		}
		held := heap() - before
		require.InDelta(t, held, j.Stats().Bytes+aboutTarget*exporters, 0.2*float64(held), "it knows about how much it holds")
		return float64(held-int64(text)) / float64(series)
	}
	first, later := kept(start), kept(start.Add(2*calm))
	t.Logf("%d series: %.0f B a series besides %.0f B of text, %.0f a minute later", series, first, float64(text)/float64(series), later)
	require.Less(t, later, first-45)
	c := targets[0].cohort
	require.Zero(t, c.Counts().Shapes)
	require.Zero(t, c.Counts().Pieces)
	require.Zero(t, c.learned.Load())
	require.Zero(t, c.looked.Load())
	runtime.KeepAlive(targets)
	runtime.KeepAlive(pages)
}

// A cohort rests only when no page has had a new line for a long time, and again after the next new line.
func TestLinesAreAddedAfterARest(t *testing.T) {
	j, oracle := newTestJob(t, Config{Scrape: testScrapeConfig()}), newTestJob(t, Config{Scrape: testScrapeConfig()})
	target, alone := testTarget(j, 0), testTarget(oracle, 0)
	c := target.cohort
	var page strings.Builder
	page.Write(unlikePage(1, 20))
	at := start
	for n, k := range []struct {
		after   time.Duration
		isNew   bool
		resting bool
	}{{0, true, false}, {calm / 2, false, false}, {calm / 2, true, false}, {calm / 2, false, false}, {calm, false, true}, {1, true, false}, {2 * calm, true, false}, {calm, false, true}} {
		at = at.Add(k.after)
		if k.isNew {
			page.Write(unlikePage(100+n, 3))
		}
		got, want := show(target, at, typeText, page.String(), 1<<20), show(alone, at, typeText, page.String(), 1<<20)
		require.NoError(t, got.Err)
		require.Equal(t, canon(want.Metrics), canon(got.Metrics))
		require.Equal(t, want.Added, got.Added)
		alone.cohort.learned.Store(0) // so that it keeps everything
		alone.cohort.looked.Store(0)
		require.Equal(t, k.resting, c.learned.Load() == 0, "page %d", n)
		require.Equal(t, k.resting, c.Counts().Shapes == 0, "page %d", n)
		require.Equal(t, k.resting, c.looked.Load() == 0, "page %d", n)
	}
}
