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

// What a rollout replaces: so many series of each page, at once. What is kept of them would be seen: one that is not forgotten
// takes some 150 bytes.
const rolledSeries = 400

// Pages have other series after so many scrapes, and targets are others as often as discovery can tell, in a short run; in
// a long one every two minutes.
const (
	shortRollout, longRollout     = 6 * time.Second, 2 * time.Minute
	shortRollAfter, longRollAfter = 3, 120
)

// TestRollouts replaces all that there is, again and again, and looks whether anything grows or gets lost: what was is nobody's any
// more. `make soak` makes it long.
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
			s.watch() // from when there is as much as there will be: until half of a cache has ended, it is kept
		}
	}
	s.requireSteady(t)
	s.arrived(t, time.Now()) // on a machine with other work the server is behind by more than a shutdown waits for
	assert.Zero(t, s.stop(t), "nothing was to be lost")
	t.Log(s.trends)
}
