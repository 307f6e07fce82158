// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package racetest tells tests what they need to know about the race detector. It makes them take ten times as long, so `make test`
// runs each test without it, and with it once more, briefly, what several goroutines do. `make race` runs everything
// with it.
package racetest

import "testing"

// brief reports whether the race detector runs and has to be quick (-race -short).
func brief() bool { return Enabled && testing.Short() }

// Sequential declares that a test has no concurrency: the race detector would find nothing, so the test is skipped in
// brief runs.
func Sequential(tb testing.TB) {
	tb.Helper()
	if brief() {
		tb.Skip("one thing is done after another: it runs without the race detector")
	}
}

// SmallerIn declares that another test has the same goroutines with less data: this test is skipped in brief runs.
func SmallerIn(tb testing.TB, test string) {
	tb.Helper()
	if brief() {
		tb.Skipf("the race detector sees the same in %s, which is smaller", test)
	}
}

// Size returns the size of a test: full, or few in brief runs, in which the same goroutines work on less data.
func Size(full, few int) int {
	if brief() {
		return few
	}
	return full
}
