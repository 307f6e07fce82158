// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// TestAnyOrderIsLaidOut adds the same samples in orders that need sorting and in orders that need none.
func TestAnyOrderIsLaidOut(t *testing.T) {
	type call struct{ target, width, at int }
	for _, calls := range [][]call{
		{{0, 1, 0}, {1, 1, 0}},                       // one series of two targets, in order
		{{1, 1, 0}, {0, 1, 0}},                       // the target known first comes last
		{{0, 20, 0}},                                 // one page
		{{0, 20, 0}, {0, 20, 1}},                     // twice
		{{0, 20, 0}, {1, 40, 0}, {1, 20, 1}},         // of two targets
		{{1, 1, 0}, {1, 1, 1}, {1, 1, 2}, {0, 1, 0}}, // a run, then another target
	} {
		e, d := newEncoder(t, func(c *Config) { c.Cache.TargetInfo = true })
		require.NoError(t, e.Add(page(0, 40, epoch.Add(-time.Hour)), ""))
		flushAll(e, v2Zstd)
		want := 0
		for _, c := range calls {
			require.NoError(t, e.Add(page(c.target, c.width, epoch.Add(time.Duration(c.at)*time.Second)), ""))
			want += c.width
		}
		series, _ := decode(t, flushAll(e, v2Zstd))
		got, seen := 0, map[string]bool{}
		for _, s := range series {
			if s.Labels[0].Value == "target_info" {
				continue
			}
			assert.False(t, seen[labelsOf(s)], "one message a series")
			seen[labelsOf(s)] = true
			for i, p := range s.Samples {
				assert.Equal(t, epoch.UnixMilli()+int64(i)*1000, p.Timestamp)
				got++
			}
		}
		assert.Equal(t, want, got)
		assert.Zero(t, d.total())
	}
}

func TestOneLargeBufferIsKept(t *testing.T) {
	e, _ := newEncoder(t, nil)
	md := clusterPage(400, 62)
	for range 3 {
		require.NoError(t, e.Add(md, ""))
		flushAll(e, v2Zstd)
		retime(md, time.Minute)
	}
	c := &e.tenants[""].columns[0]
	assert.GreaterOrEqual(t, cap(c.open.series), 400*62)
	assert.True(t, c.spare == nil || cap(c.spare.series) <= maxSpare)
	w := e.flusher()
	assert.LessOrEqual(t, cap(w.sorted), pieceSize, "they came in order")
	// The small rest of a large page leaves it there, but what is no longer needed is let go.
	for i := range 64 {
		require.NoError(t, e.Add(page(0, 10, epoch.Add(time.Duration(i)*time.Minute)), ""))
		flushAll(e, v2Zstd)
		if i == 0 {
			assert.GreaterOrEqual(t, cap(c.open.series), 400*62)
		}
	}
	assert.LessOrEqual(t, cap(c.open.series), fewSamples)
}

// TestTwoBuffersOfARequestAreKept: what comes while a request is encoded fills a second buffer, scrape after scrape.
func TestTwoBuffersOfARequestAreKept(t *testing.T) {
	c := &newColumns(1)[0]
	page := part{batches: []batch{{}}}
	for range pieceSize { // which no pool has to keep
		page.values = append(page.values, value{series: &cache.Series{}})
	}
	scrape := func() {
		for range 3 {
			c.take(&page, false)
			b := c.swap()
			c.take(&page, false) // meanwhile
			c.giveBack(b)
			c.giveBack(c.swap()) // nothing came
		}
	}
	assert.Zero(t, alloctest.PerRun(scrape))
	for range 100 { // much smaller pages
		c.take(&part{batches: []batch{{}}, values: page.values[:10]}, false)
		c.giveBack(c.swap())
	}
	for _, b := range []*buffer{c.open, c.spare} {
		assert.True(t, b == nil || cap(b.series) <= 4*10+fewSamples && len(b.samples.pieces) <= 1)
	}
}

// TestTwoLargeBuffersAreKeptWhileTheyAreNeeded: what comes while a large request is encoded fills a second buffer as large, and
// nothing is made anew for it. When nothing comes for a while, one is enough.
func TestTwoLargeBuffersAreKeptWhileTheyAreNeeded(t *testing.T) {
	c := &newColumns(1)[0]
	page := part{batches: []batch{{}}}
	for range maxSpare + 1 {
		page.values = append(page.values, value{series: &cache.Series{}})
	}
	room := func() int { return cap(c.open.series) + cap(c.spare.series) }
	c.take(&page, false)
	for i := range 3 * fewAlone {
		b := c.swap()
		if i%(fewAlone-1) > 0 { // else nothing comes meanwhile, which says little
			c.take(&page, false)
		}
		c.giveBack(b)
		require.NotNil(t, c.spare)
		if i > 1 {
			require.Greater(t, room(), 2*maxSpare)
		}
		if len(c.open.series) == 0 {
			c.take(&page, false)
		}
	}
	for range fewAlone {
		c.giveBack(c.swap())
		c.take(&page, false)
	}
	assert.Greater(t, cap(c.open.series), maxSpare)
	assert.True(t, c.spare == nil || cap(c.spare.series) <= maxSpare)
}

// TestRoomOfBuffersFollowsWhatComes: of pages that are new all exemplars are, and their room is let go of when fewer come.
func TestRoomOfBuffersFollowsWhatComes(t *testing.T) {
	c := &newColumns(1)[0]
	one := &cache.Series{}
	take := func(n int) {
		p := part{batches: []batch{{}}, values: []value{{series: one, start: 1}}, bytes: make([]byte, 100*n)}
		for range n {
			p.exemplars = append(p.exemplars, pendingExemplar{series: one})
		}
		c.take(&p, false)
		c.giveBack(c.swap())
	}
	take(10 * fewExemplars)
	assert.GreaterOrEqual(t, cap(c.open.exemplars), 10*fewExemplars)
	for range 200 {
		take(10)
	}
	for _, b := range []*buffer{c.open, c.spare} {
		assert.True(t, b == nil || cap(b.exemplars) <= fewExemplars+2*16 && cap(b.bytes) <= fewBytes+2*1100)
	}
}

// TestRoomToSortIsKept: a small request after a large one leaves the room of that one to the next, and many small ones do not.
func TestRoomToSortIsKept(t *testing.T) {
	e, _ := newEncoder(t, nil)
	flush := func(i, targets, width int) {
		for target := range targets { // of the same series, so that they have to be sorted
			require.NoError(t, e.Add(page(target, width, epoch.Add(time.Duration(i)*time.Minute)), ""))
		}
		flushAll(e, v2Zstd)
	}
	room := func() int {
		w := e.flusher()
		defer func() { e.flushers <- w }()
		return cap(w.sorted)
	}
	const targets, width = 10, fewSamples / 2
	flush(0, targets, width)
	require.GreaterOrEqual(t, room(), targets*width)
	flush(1, 2, 10)
	require.GreaterOrEqual(t, room(), targets*width)
	for i := range 100 {
		flush(2+i, 2, 10)
	}
	require.LessOrEqual(t, room(), 4*2*10+fewSamples)
}
