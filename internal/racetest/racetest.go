// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package racetest tells tests what they need to know about the race detector. It makes them take ten times as long, so `make test`
// runs each test without it, and with it once more, briefly, what several goroutines do. `make race` runs everything
// with it.
package racetest

import "testing"

// brief says that the race detector runs, and is to find what it finds soon (-race -short).
func brief() bool { return Enabled && testing.Short() }

// Sequential says that in a test one thing is done after another: there is nothing to find in it, and it is skipped in
// brief runs.
func Sequential(tb testing.TB) {
	tb.Helper()
	if brief() {
		tb.Skip("one thing is done after another: it runs without the race detector")
	}
}

// SmallerIn says that in another test the same goroutines meet over less data: the test itself is skipped in brief runs.
func SmallerIn(tb testing.TB, test string) {
	tb.Helper()
	if brief() {
		tb.Skipf("the race detector sees the same in %s, which is smaller", test)
	}
}

// Size is how large a test is: full, or of few in brief runs, where the same goroutines meet over less.
func Size(full, few int) int {
	if brief() {
		return few
	}
	return full
}
