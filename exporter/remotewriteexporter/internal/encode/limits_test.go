// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

func TestRequestsKeepTheirLimits(t *testing.T) {
	for _, f := range formats {
		e, d := newEncoder(t, func(c *Config) { c.MaxSamples, c.MaxRawBytes = 300, 20_000 })
		for target := range 40 {
			require.NoError(t, e.Add(page(target, 50, epoch), ""))
		}
		blocks := flushAll(e, f)
		for _, b := range blocks {
			assert.LessOrEqual(t, b.Samples, 300)
			assert.LessOrEqual(t, b.RawSize, 20_000)
			assert.Greater(t, b.Samples, 50)
		}
		series, _ := decode(t, blocks)
		assert.Len(t, series, 2000)
		assert.Zero(t, d.total())
	}
}

func TestRequestsAreOfOneSize(t *testing.T) {
	e, _ := newEncoder(t, func(c *Config) { c.MaxSamples = 90 })
	require.NoError(t, e.Add(page(0, 100, epoch), ""))
	blocks := flushAll(e, v2Zstd)
	require.Len(t, blocks, 2)
	assert.Equal(t, 50, blocks[0].Samples)
}

func TestOneSampleOverTheLimitIsCounted(t *testing.T) {
	e, d := newEncoder(t, func(c *Config) { c.MaxRawBytes = 2000 })
	require.NoError(t, e.Add(gauge("a", 1, epoch), ""))
	require.NoError(t, e.Add(gauge("huge", 1, epoch, "k", strings.Repeat("x", 3000)), ""))
	require.NoError(t, e.Add(gauge("z", 1, epoch), ""))
	series, _ := decode(t, flushAll(e, v2Zstd))
	assert.Len(t, series, 2)
	assert.Equal(t, map[loss.Reason]int{loss.TooLarge: 1}, d.counts)
	assert.Equal(t, "huge", d.firsts[loss.TooLarge])
}

func TestLongRunOfOneSeriesIsCut(t *testing.T) {
	for _, f := range formats {
		e, d := newEncoder(t, func(c *Config) { c.MaxSamples, c.MaxRawBytes = 1000, 4096 })
		for i := range 950 {
			require.NoError(t, e.Add(gauge("g", float64(i), epoch.Add(time.Duration(i)*time.Second)), ""))
		}
		series, _ := decode(t, flushAll(e, f))
		last, n := int64(0), 0
		for _, s := range series {
			for _, p := range s.Samples {
				require.Greater(t, p.Timestamp, last)
				last = p.Timestamp
				n++
			}
		}
		assert.Equal(t, 950, n)
		assert.Zero(t, d.total())
	}
}

func TestCompressedSizeIsLearnt(t *testing.T) {
	for _, f := range formats {
		e, _ := newEncoder(t, nil)
		e.Limits.LimitCompressed(4000)
		for round := range 3 {
			for target := range 40 {
				require.NoError(t, e.Add(page(target, 50, epoch.Add(time.Duration(round)*time.Second)), ""))
			}
			blocks := flushAll(e, f)
			for _, b := range blocks {
				assert.LessOrEqual(t, len(b.Body()), 4000)
			}
			series, _ := decode(t, blocks)
			n := 0
			for _, s := range series {
				n += len(s.Samples)
			}
			assert.Equal(t, 2000, n)
		}
	}
}
