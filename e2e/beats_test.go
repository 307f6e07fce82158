// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/rwserver"
)

// beatsPage counts the scrapes of its target, so that each sample says which scrape it is from.
const beatsPage = "# TYPE beats_total counter\nbeats_total %d\n"

// beats returns the scrapes of such a target in order of arrival, and the number of scrapes that the receiver reported
// as failed: on a busy machine a scrape may exceed its timeout.
func beats(server *rwserver.Server, pairs ...string) (arrived []int, failed int) {
	for _, series := range server.Series("beats_total", pairs...) {
		for _, sample := range series.Samples {
			if !sample.Stale() {
				arrived = append(arrived, int(sample.V))
			}
		}
	}
	for _, series := range server.Series("up", pairs...) {
		for _, sample := range series.Samples {
			if !sample.Stale() && sample.V == 0 {
				failed++
			}
		}
	}
	return arrived, failed
}

// everyBeat checks that the scrapes of a target arrived in order and that none is missing except failed ones. It
// returns their number.
func everyBeat(t *testing.T, server *rwserver.Server, pairs ...string) int {
	t.Helper()
	arrived, failed := beats(server, pairs...)
	missing, inOrder := gaps(arrived)
	assert.True(t, inOrder, "%q: out of order: %v", pairs, arrived)
	assert.LessOrEqual(t, missing, failed, "%q: %d scrapes are missing and %d failed: %v", pairs, missing, failed, arrived)
	return len(arrived)
}

// gaps counts the numbers missing between 0 and the last one.
func gaps(numbers []int) (missing int, inOrder bool) {
	next := 0
	for _, number := range numbers {
		if number < next {
			return 0, false
		}
		missing += number - next
		next = number + 1
	}
	return missing, true
}

func TestGapsAreSeen(t *testing.T) {
	f := func(missing int, inOrder bool, numbers ...int) {
		t.Helper()
		gotMissing, gotInOrder := gaps(numbers)
		assert.Equal(t, missing, gotMissing, numbers)
		assert.Equal(t, inOrder, gotInOrder, numbers)
	}
	f(0, true)
	f(0, true, 0, 1, 2)
	f(1, true, 1, 2)
	f(3, true, 0, 2, 5)
	f(0, false, 0, 2, 1)
	f(0, false, 0, 1, 1)
}
