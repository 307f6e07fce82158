// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package column

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// A page with many new exemplars only makes the room for exemplars be freed, not that for samples too: that would be
// allocated again for each such page.
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

// Recurring pages with many new exemplars reuse the room of the last one, even with pages with few or none in between.
// The room of a single page, as when everything is new, is freed.
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
