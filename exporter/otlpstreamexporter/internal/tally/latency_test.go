// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLatenciesAreWithinAnEighth(t *testing.T) {
	last := time.Duration(0)
	for bucket := range 8 * 40 {
		bound := upperBound(bucket)
		require.Greater(t, bound, last)
		if bucket > 0 {
			require.Equal(t, bucket, bucketOf(bound-1))
			require.Equal(t, min(bucket+1, 8*40-1), bucketOf(bound))
			require.LessOrEqual(t, bound-last, max(last/8, time.Microsecond))
		}
		last = bound
	}
	var l Latencies
	require.Zero(t, l.Snapshot())
	for i := range 3 * latencyMemory {
		l.Record(time.Duration(i%100+1) * time.Millisecond)
	}
	s := l.Snapshot()
	require.InEpsilon(t, 50*time.Millisecond, s.P50, 0.15)
	require.InEpsilon(t, 100*time.Millisecond, s.P99, 0.15)
	for range 3 * latencyMemory {
		l.Record(time.Second)
	}
	require.InEpsilon(t, time.Second, l.Snapshot().P50, 0.15, "the past fades")
	l.Record(-time.Second) // clocks are set
	l.Record(time.Duration(math.MaxInt64))
}
