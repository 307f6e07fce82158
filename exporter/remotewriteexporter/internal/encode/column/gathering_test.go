// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package column

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// A page with many new exemplars costs the room for exemplars, not that for samples too: it would be made again for each such page.
func TestManyExemplarsLeaveRoomForSamples(t *testing.T) {
	for _, c := range []struct {
		samples, exemplars int
		keepsSamples       bool
		keepsExemplars     bool
	}{
		{5000, 100, true, true},
		{5000, fewExemplars, true, true},
		{5000, 2 * fewExemplars, true, true},
		{8 * FewSamples, 100, false, false},
	} {
		s := NewGathering(1)
		to := New(1)
		one := &cache.Series{}
		s.Begin(&cache.ResourceLabels{})
		for i := range c.samples {
			s.Add(one, int64(i), 0, 0)
		}
		for i := range c.exemplars {
			s.AddExemplar(one, []byte("trace"), int64(i), 0)
		}
		s.Commit(to)
		p := &s.Shards[0]
		require.Equal(t, c.keepsSamples, cap(p.values) >= c.samples)
		require.Equal(t, c.keepsExemplars, cap(p.exemplars) >= c.exemplars && cap(p.bytes) > 0)
		require.Len(t, to[0].open.Exemplars, c.exemplars)
	}
}

// Pages with many new exemplars that come again and again find the room of the last, between others with few or none. What a single page had,
// as when all is new, is let go.
func TestRoomForExemplarsFollowsWhatComes(t *testing.T) {
	s := NewGathering(1)
	to := New(1)
	one := &cache.Series{}
	page := func(exemplars int) {
		s.Begin(&cache.ResourceLabels{})
		s.Add(one, 0, 0, 0)
		for i := range exemplars {
			s.AddExemplar(one, []byte("trace"), int64(i), 0)
		}
		s.Commit(to)
	}
	const many = 4 * fewExemplars
	p := &s.Shards[0]
	page(many)
	room := cap(p.exemplars)
	for range 20 {
		for range 10 {
			page(10)
			page(0)
		}
		require.Equal(t, room, cap(p.exemplars))
		page(many)
	}
	for range 500 {
		page(0)
	}
	require.Equal(t, room, cap(p.exemplars), "pages without any say nothing of those that have some")
	for range 500 {
		page(10)
	}
	require.LessOrEqual(t, cap(p.exemplars), fewExemplars)
}
