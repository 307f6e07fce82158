// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/decode"
)

// TestStepsOfTheClockAreNotSeen checks every stored time. The duration between two times with a monotonic reading is
// correct even if the wall clock is set meanwhile. Age limits are timers.
func TestStepsOfTheClockAreNotSeen(t *testing.T) {
	stepless := func(moment time.Time) bool { return strings.Contains(moment.String(), " m=") }
	bothTransports(t, func(t *testing.T, dial dialer) {
		r := start(t, &pipeline{})
		c := dial(t, r, 0)
		c.export(1, "x")
		c.answer()
		since := r.Snapshot().Clients[0].Streams[0].Since
		require.True(t, stepless(since), "%v", since)
		r.places.mu.Lock()
		defer r.places.mu.Unlock()
		require.Len(t, r.places.sessions, 1)
		for s := range r.places.sessions {
			require.Less(t, s.active.Load(), sinceTheStart, "which stream is idle, and has to give up its place")
			require.Less(t, s.idleFor(time.Now()), patience)
		}
	})
	a := &again{}
	a.lists.Store(decode.NewLists(1 << 20))
	a.aged.Store(-2 * int64(listAge))
	a.get()
	require.Positive(t, a.aged.Load())
	require.Less(t, a.aged.Load(), sinceTheStart, "when attributes are let go of")
}

// sinceTheStart is less than any wall-clock time.
const sinceTheStart = int64(24 * time.Hour)
