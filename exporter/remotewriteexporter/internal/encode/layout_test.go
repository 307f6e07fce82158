// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/column"
)

// TestAnyOrderIsLaidOut adds the same samples in orders that need sorting and in orders that do not.
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
	md := clusterPage(500, 50)
	for range 3 {
		require.NoError(t, e.Add(md, ""))
		flushAll(e, v2Zstd)
		retime(md, time.Minute)
	}
	room := func() int {
		c := &e.tenants[""].columns[0]
		defer c.Unlock()
		return cap(c.Lock().Series)
	}
	assert.GreaterOrEqual(t, room(), 500*50)
	// The small rest of a large page leaves it there, but what is no longer needed is let go.
	for i := range 64 {
		require.NoError(t, e.Add(page(0, 10, epoch.Add(time.Duration(i)*time.Minute)), ""))
		flushAll(e, v2Zstd)
		if i == 0 {
			assert.GreaterOrEqual(t, room(), 500*50)
		}
	}
	assert.LessOrEqual(t, room(), column.FewSamples)
}
