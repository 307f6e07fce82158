// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package alloctest counts allocations in tests that limit them.
package alloctest

import (
	"testing"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// PerRun returns the allocations of one call of f once it is warm. It takes the least of several rounds: a
// collection may empty a sync.Pool in any of them, and the race detector makes pools forget at random.
func PerRun(f func()) float64 {
	rounds, runs := 20, 5
	if racetest.Enabled {
		rounds, runs = 60, 1 // one that uses four pools is spared once in three times, and five in a row hardly ever
	}
	least := testing.AllocsPerRun(runs, f)
	for range rounds - 1 {
		if least == 0 {
			break
		}
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}
