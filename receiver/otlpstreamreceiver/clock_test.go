// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStepsOfTheClockAreNotSeen looks at every moment that is kept. What lies between two that have a monotonic reading is
// right whatever the wall clock is set to meanwhile: how long requests stay, and with it the delay that clients are asked
// for. Limits on age are timers.
func TestStepsOfTheClockAreNotSeen(t *testing.T) {
	stepless := func(moment time.Time) bool { return strings.Contains(moment.String(), " m=") }
	bothTransports(t, func(t *testing.T, dial dialer) {
		r := start(t, &pipeline{do: func(context.Context, string) error {
			time.Sleep(time.Millisecond) // it takes a while
			return nil
		}})
		c := dial(t, r, 0)
		c.export(1, "x")
		c.answer()
		eventually(t, func() bool { return r.admission.inFlight() == 0 }, "it is released")
		r.admission.mu.Lock()
		progress, stay := r.admission.progress, r.admission.stay
		r.admission.mu.Unlock()
		require.True(t, stepless(progress), "%v", progress)
		require.Positive(t, stay)
		require.Less(t, stay, patience)
		since := r.Snapshot().Clients[0].Streams[0].Since
		require.True(t, stepless(since), "%v", since)
	})
}
