// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

func held(blocks []block.Block) (n int) {
	for _, b := range blocks {
		n += b.Samples + b.Histograms
	}
	return n
}

// TestDefectCostsTheDataThatMeetsIt: a panic in a Flush loses what was not finished, is counted, and affects nothing
// else: no lock stays held.
func TestDefectCostsTheDataThatMeetsIt(t *testing.T) {
	e, d := newEncoder(t, func(c *Config) { c.MaxSamples = 4 })
	require.NoError(t, e.Add(page(0, 10, epoch), ""))
	c := &e.tenants[""].columns[0]
	c.Lock().Samples.At(9).Extra = 99 // which our code never does
	c.Unlock()
	blocks := flushAll(e, v2Zstd)
	assert.Len(t, d.panics, 1)
	assert.Equal(t, map[loss.Reason]int{loss.Panic: 10 - held(blocks)}, d.counts)
	series, _ := decode(t, blocks)
	assert.NotEmpty(t, series, "what was finished before is sent")
	for range 3 {
		e.Expire() // needs the locks of all columns
		require.NoError(t, e.Add(page(0, 10, epoch.Add(time.Minute)), ""))
		assert.Equal(t, 10, held(flushAll(e, v2Zstd)))
	}
	assert.Len(t, d.panics, 1)
}

func TestDefectInAddIsAnError(t *testing.T) {
	e, d := newEncoder(t, nil)
	require.NoError(t, e.Add(page(0, 10, epoch), ""))
	columns := e.tenants[""].columns
	e.tenants[""].columns = nil
	require.ErrorContains(t, e.Add(page(0, 10, epoch.Add(time.Second)), ""), "panic")
	e.tenants[""].columns = columns
	assert.Equal(t, map[loss.Reason]int{loss.Panic: 10}, d.counts)
	e.Expire()
	require.NoError(t, e.Add(page(0, 10, epoch.Add(time.Minute)), ""))
	assert.Equal(t, 20, held(flushAll(e, v2Zstd)))
}
