// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/loss"
)

// TestPointsShareAForm adds many points of a metric: similar ones, some with other keys, and some whose values lead to
// other labels.
func TestPointsShareAForm(t *testing.T) {
	const manyForms = 32 // more than a metric shares
	e, d := newEncoder(t, nil)
	for i := range 100 {
		require.NoError(t, e.Add(gauge("g", 1, epoch, "a", fmt.Sprint(i), "b", "x"), ""))
	}
	odd := [][]string{
		{"a", "", "b", "x"},                 // no label at all: a form of its own
		{"a", "", "b", "y"},                 // which others share
		{"a", "\xff\xfe", "b", "x"},         // replaced in the label
		{"a", "other\xff", "b", "x"},        // with another value
		{"a.c", "1", "a/c", "2", "b", "x"},  // two attributes, one label
		{"a.c", "1", "a/c", "22", "b", "x"}, // with another value
		{"instance", "mine", "b", "x"},      // also the resource's
	}
	for round := range 3 {
		for _, attrs := range odd {
			require.NoError(t, e.Add(gauge("g", 1, epoch.Add(time.Duration(round+1)*time.Second), attrs...), ""))
		}
	}
	stats := e.Stats()
	assert.Equal(t, 100+len(odd), stats.Series)
	assert.EqualValues(t, 100+len(odd), stats.Misses, "each is recognised again")
	for i := range manyForms {
		require.NoError(t, e.Add(gauge("g", 1, epoch, fmt.Sprintf("k%d", i), "v"), ""))
	}
	series, _ := decode(t, flushAll(e, v2Zstd))
	names := map[string]int{}
	for _, s := range series {
		names[labelsOf(s)] += len(s.Samples)
	}
	assert.Len(t, names, 100+len(odd)+manyForms)
	assert.Equal(t, 3, names[`__name__="g",a_c="1;2",b="x",`])
	assert.Equal(t, 3, names[`__name__="g",a="other`+"\uFFFD"+`",b="x",`])
	assert.Zero(t, d.total())
	for range 8 {
		e.Expire()
	}
	assert.Equal(t, 1, e.Stats().Symbols)
}

// TestOneSeriesOfTwoPoints has the same labels in two orders, which must stay one series.
func TestOneSeriesOfTwoPoints(t *testing.T) {
	e, d := newEncoder(t, nil)
	require.NoError(t, e.Add(gauge("g", 1, epoch, "a", "1", "b", "2"), ""))
	require.NoError(t, e.Add(gauge("g", 2, epoch, "b", "2", "a", "1"), ""))
	require.NoError(t, e.Add(gauge("g", 3, epoch, "a", "1", "b", "2", "c", ""), ""))
	series, _ := decode(t, flushAll(e, v2Zstd))
	require.Len(t, series, 1)
	assert.Len(t, series[0].Samples, 1)
	assert.Equal(t, map[loss.Reason]int{loss.Duplicate: 2}, d.counts)
	assert.Equal(t, 3, e.Stats().Series)
	for range 8 {
		e.Expire()
	}
	assert.Equal(t, 1, e.Stats().Symbols)
}
