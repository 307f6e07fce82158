// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/wait"
)

// rolledSeries is how many series of each page a rollout replaces at once. A leak would show: a series that is not
// removed takes some 150 bytes.
const rolledSeries = 400

// In a short run targets are replaced as often as discovery notices, in a long one every two minutes. RollAfter is the
// number of scrapes after which a page's series are replaced.
const (
	shortRollout, longRollout     = 6 * time.Second, 2 * time.Minute
	shortRollAfter, longRollAfter = 3, 120
)

// TestRollouts replaces all targets and many series again and again, and checks that nothing grows or gets lost. `make
// soak` makes it long.
func TestRollouts(t *testing.T) {
	t.Parallel()
	s := startSoak(t, soakDuration(t))
	duration := max(soakDuration(t), 6*shortRollout)
	every, after := shortRollout, shortRollAfter
	if duration >= 6*longRollout {
		every, after = longRollout, longRollAfter
	}
	s.flocks.mu.Lock()
	s.flocks.passing, s.flocks.passAfter = rolledSeries, after
	s.flocks.mu.Unlock()
	begin := time.Now()
	for rollout := 1; time.Since(begin) < duration; rollout++ {
		for flock := range len(s.flocks.all) / perFlock {
			s.flocks.arrive(t, flock)
		}
		for end := time.Now().Add(every); time.Now().Before(end); wait.Pause(t.Context(), readingEvery) {
			s.read(t)
		}
		if rollout == 2 {
			s.watch() // from here on there is no more to store: a cache keeps ended series until they are half of it
		}
	}
	s.requireSteady(t)
	s.arrived(t, time.Now()) // on a busy machine the server may be further behind than a shutdown waits for
	assert.Zero(t, s.stop(t), "nothing was to be lost")
	t.Log(s.trends)
}
