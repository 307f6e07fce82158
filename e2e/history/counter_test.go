// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"
)

// A counter's value in its first sample counts, and so does its value after a restart that left it higher than before.
func TestCountersBeginWithZero(t *testing.T) {
	h := New(t)
	at := func(seconds int) time.Time { return time.Unix(1_000_000+int64(seconds), 0) }
	honks := labels.FromStrings("__name__", "honks")
	grown := func(seconds int) float64 {
		t.Helper()
		h.MoveTo(at(seconds))
		got := h.Query(`increase(honks[1h] anchored)`)
		require.Len(t, got, 1)
		return got[0].F
	}
	h.PutCounter(honks, at(0), at(10), 5)
	require.InDelta(t, 5, grown(10), 0)
	h.PutCounter(honks, at(0), at(20), 7)
	require.InDelta(t, 7, grown(20), 0)
	h.PutCounter(honks, at(20), at(30), 100) // a reset that does not lower the value
	require.InDelta(t, 107, grown(30), 0)
	h.PutEnd(honks, at(40))
	require.InDelta(t, 107, grown(40), 0)
	h.PutCounter(honks, at(40), at(50), 8)
	require.InDelta(t, 115, grown(50), 0)
	require.Len(t, h.Query(`honks`), 1)
}
