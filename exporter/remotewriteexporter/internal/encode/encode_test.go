// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPagesBecomeSeries(t *testing.T) {
	for _, f := range formats {
		e, d := newEncoder(t, nil)
		for target := range 20 {
			require.NoError(t, e.Add(page(target, 50, epoch), ""))
		}
		samples, _ := e.Pending(0, "")
		assert.Equal(t, 1000, samples)
		series, _ := decode(t, flushAll(e, f))
		assert.Len(t, series, 1000)
		if f != v2Snappy { // which has another order
			assert.Equal(t, `__name__="node_metric_000_things",instance="127.0.0.0:9100",job="node",`, labelsOf(series[0]))
			assert.Equal(t, `__name__="node_metric_000_things",instance="127.0.0.1:9100",job="node",`, labelsOf(series[1]))
			assert.Equal(t, `__name__="node_metric_001_things",device="eth0",instance="127.0.0.0:9100",job="node",mode="idle",`,
				labelsOf(series[20]))
		}
		seen := map[string]float64{}
		for _, s := range series {
			require.Len(t, s.Samples, 1)
			assert.Equal(t, epoch.UnixMilli(), s.Samples[0].Timestamp)
			seen[labelsOf(s)] = s.Samples[0].Value
		}
		assert.Len(t, seen, 1000)
		assert.Zero(t, d.total())
		s := e.Stats()
		assert.Equal(t, 50, s.Series)
		assert.EqualValues(t, 50, s.Misses)
		assert.EqualValues(t, 950, s.Hits)
		assert.Zero(t, s.Moves)
	}
}
