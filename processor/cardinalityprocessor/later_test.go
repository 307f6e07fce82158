// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"bytes"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// TestWhatALaterVersionHasSavedIsKept: after a downgrade and another upgrade, the later version finds its data as it
// was.
func TestWhatALaterVersionHasSavedIsKept(t *testing.T) {
	config := withStorage(aggregating(AggregateConfig{By: []string{}}, func(r *RuleConfig) { r.Match.Metric = "hits" }))
	for _, now := range [][2]string{{"cardinality 3\n", "cardinality 12\n"}, {"key 1\n", "key 2\n"}} {
		host := newMemory()
		before := newRig(t, config)
		require.NoError(t, before.begin(host))
		for i := range 100 {
			before.send(aSeries(i))
		}
		before.consume(before.timed(pod(cumulative, "a", "/"), before.clock, before.at(1), 10))
		require.NoError(t, before.shutdown(t.Context()))
		for name, value := range host.data {
			host.data[name] = bytes.Replace(value, []byte(now[0]), []byte(now[1]), 1)
		}
		later := maps.Clone(host.data)
		for round := range 2 { // and not again
			after := newRig(t, config)
			core, logs := observer.New(zap.WarnLevel)
			after.Logger = zap.New(core)
			require.NoError(t, after.begin(host))
			after.send(aSeries(1))
			require.NoError(t, after.shutdown(t.Context()))
			kept := 0
			for name, value := range later {
				if bytes.Contains(value, []byte(now[1])) {
					require.Equal(t, value, host.data[name+".later"], name)
					require.NotEqual(t, value, host.data[name], name)
					kept++
				}
			}
			require.Positive(t, kept)
			told := logs.FilterMessageSnippet("later version").Len()
			require.Equal(t, 1-round, told)
		}
		if now[0] != "key 1\n" {
			require.Greater(t, len(host.data), 2*series.PartCount)
		}
	}
}
