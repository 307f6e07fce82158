// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package column

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// TestTwoBuffersOfARequestAreKept: data that is added while a request is encoded fills a second buffer, scrape after
// scrape.
func TestTwoBuffersOfARequestAreKept(t *testing.T) {
	c := &New(1)[0]
	page := part{batches: []batch{{}}}
	for range pieceSize { // so that it does not come from a pool
		page.values = append(page.values, value{series: &cache.Series{}})
	}
	scrape := func() {
		for range 3 {
			c.take(&page, false)
			b := c.Swap()
			c.take(&page, false) // meanwhile
			c.GiveBack(b)
			c.GiveBack(c.Swap()) // nothing was added
		}
	}
	assert.Zero(t, alloctest.PerRun(scrape))
	for range 100 { // much smaller pages
		c.take(&part{batches: []batch{{}}, values: page.values[:10]}, false)
		c.GiveBack(c.Swap())
	}
	for _, b := range []*Buffer{c.open, c.spare} {
		assert.True(t, b == nil || cap(b.Series) <= 4*10+FewSamples && len(b.Samples.pieces) <= 1)
	}
}

// TestTwoLargeBuffersAreKeptWhileTheyAreNeeded: data that is added while a large request is encoded fills a second
// buffer of the same size, without new memory. If nothing is added for a while, one buffer is enough.
func TestTwoLargeBuffersAreKeptWhileTheyAreNeeded(t *testing.T) {
	c := &New(1)[0]
	page := part{batches: []batch{{}}}
	for range maxSpare + 1 {
		page.values = append(page.values, value{series: &cache.Series{}})
	}
	room := func() int { return cap(c.open.Series) + cap(c.spare.Series) }
	c.take(&page, false)
	for i := range 3 * fewAlone {
		b := c.Swap()
		if i%(fewAlone-1) > 0 { // otherwise nothing is added meanwhile, which is not significant
			c.take(&page, false)
		}
		c.GiveBack(b)
		require.NotNil(t, c.spare)
		if i > 1 {
			require.Greater(t, room(), 2*maxSpare)
		}
		if len(c.open.Series) == 0 {
			c.take(&page, false)
		}
	}
	for range fewAlone {
		c.GiveBack(c.Swap())
		c.take(&page, false)
	}
	assert.Greater(t, cap(c.open.Series), maxSpare)
	assert.True(t, c.spare == nil || cap(c.spare.Series) <= maxSpare)
}

// TestRoomOfBuffersFollowsWhatComes: on new pages all exemplars are new, and their room is freed when there are fewer.
func TestRoomOfBuffersFollowsWhatComes(t *testing.T) {
	c := &New(1)[0]
	one := &cache.Series{}
	take := func(n int) {
		p := part{batches: []batch{{}}, values: []value{{series: one, start: 1}}, bytes: make([]byte, 100*n)}
		for range n {
			p.exemplars = append(p.exemplars, pendingExemplar{series: one})
		}
		c.take(&p, false)
		c.GiveBack(c.Swap())
	}
	take(10 * fewExemplars)
	assert.GreaterOrEqual(t, cap(c.open.Exemplars), 10*fewExemplars)
	for range 200 {
		take(10)
	}
	for _, b := range []*Buffer{c.open, c.spare} {
		assert.True(t, b == nil || cap(b.Exemplars) <= fewExemplars+2*16 && cap(b.Bytes) <= fewBytes+2*1100)
	}
}
