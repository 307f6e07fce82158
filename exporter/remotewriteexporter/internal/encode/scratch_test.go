// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"testing"

	"github.com/stretchr/testify/require"
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
		{5000, 2 * fewExemplars, true, false},
		{8 * maxScratch, 100, false, false},
	} {
		s := &scratch{shards: make([]part, 1)}
		to := &tenant{columns: newColumns(1)}
		one := &series{}
		s.begin(&resourceLabels{})
		s.encoded = []byte("trace")
		for i := range c.samples {
			s.add(one, int64(i), 0, 0)
		}
		for i := range c.exemplars {
			s.addExemplar(one, int64(i), 0)
		}
		s.commit(to)
		p := &s.shards[0]
		require.Equal(t, c.keepsSamples, cap(p.values) >= c.samples)
		require.Equal(t, c.keepsExemplars, cap(p.exemplars) >= c.exemplars && cap(p.bytes) > 0)
		require.Len(t, to.columns[0].open.exemplars, c.exemplars)
	}
}
