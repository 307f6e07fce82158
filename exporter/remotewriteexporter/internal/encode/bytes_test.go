// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// strangers returns n points with long labels that nobody has seen before, number by number.
func strangers(first, n int) pmetric.Metrics {
	md := page(0, 0, epoch)
	m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
	m.SetName("stranger")
	points := m.SetEmptyGauge().DataPoints()
	for i := range n {
		dp := points.AppendEmpty()
		dp.SetTimestamp(pcommon.NewTimestampFromTime(epoch))
		dp.SetDoubleValue(float64(i))
		dp.Attributes().PutStr("number", fmt.Sprint(first+i))
		dp.Attributes().PutStr("text", fmt.Sprintf("%09d", first+i)+strings.Repeat("x", 400))
	}
	return md
}

// TestLongLabelsOfStrangersTakeLittleMemory: places for a million series are places for half a gigabyte of labels, if
// somebody makes them that long.
func TestLongLabelsOfStrangersTakeLittleMemory(t *testing.T) {
	racetest.Sequential(t)
	const most, each, rounds = 4 << 20, 2000, 40
	before := live()
	e, d := newEncoder(t, func(c *Config) { c.Cache.MaxBytes = most })
	sent := 0
	for i := range rounds {
		require.NoError(t, e.Add(strangers(i*each, each), ""))
		require.NoError(t, e.Add(page(1, 50, epoch), ""))
		for _, b := range flushAll(e, v2Zstd) {
			sent += b.Samples
		}
		e.Relieve()
		require.False(t, e.IsCrowded())
	}
	require.Equal(t, rounds*(each+50), sent)
	require.Zero(t, d.total())
	require.Less(t, live()-before, int64(3*most), "with what a request of that size needs")
	require.Less(t, e.Stats().Series, 3*most/4/400, "and it is not counted in vain")

	for range 3 { // they are gone: there is room for others again
		require.NoError(t, e.Add(page(2, 50, epoch), ""))
		flushAll(e, v2Zstd)
		e.Expire()
	}
	misses := e.Stats().Misses
	require.NoError(t, e.Add(page(2, 50, epoch), ""))
	require.Equal(t, misses, e.Stats().Misses)
}

// TestWhatIsNotFlushedCrowds: what waits for a Flush stays whatever the limit, so the caller is told.
func TestWhatIsNotFlushedCrowds(t *testing.T) {
	e, _ := newEncoder(t, func(c *Config) { c.Cache.MaxBytes = 1 << 20 })
	n := 0
	for ; !e.IsCrowded(); n++ {
		require.Less(t, n, 100)
		require.NoError(t, e.Add(strangers(n*100, 100), ""))
	}
	e.Relieve()
	require.True(t, e.IsCrowded(), "all of it is needed")
	series, _ := decode(t, flushAll(e, v2Zstd))
	require.Len(t, series, n*100)
	e.Relieve()
	require.False(t, e.IsCrowded())
}

// TestNewTextsFillARound: what is new is written to the requests of one round, which are in memory together. So a round
// ends long before the cache is full; who sends what is known goes on.
func TestNewTextsFillARound(t *testing.T) {
	e, _ := newEncoder(t, func(c *Config) { c.Cache.MaxBytes, c.Cache.MaxGrowth = 64<<20, 1<<20 })
	for round := range 5 {
		n := 0
		for ; !e.IsFull(); n++ {
			require.Less(t, n, 100)
			require.NoError(t, e.Add(strangers(10_000*round+n*100, 100), ""))
		}
		require.Greater(t, n, 10)
		e.Cut(nil)
		require.False(t, e.IsFull())
		flushAll(e, v2Zstd)
	}
	known := strangers(0, 100)
	for range 100 {
		require.NoError(t, e.Add(known, ""))
		require.False(t, e.IsFull())
	}
}
