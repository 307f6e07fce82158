// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package growthtest tests that time grows no faster than the amount of work.
package growthtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// RequireLinear fails if doing something to sixteen times as much takes much longer than doing it sixteen times. Both
// take about equally long, so that a busy machine slows down both. One good attempt out of many is enough.
func RequireLinear(t *testing.T, n int, prepare func(n int) func()) {
	t.Helper()
	took := func(all ...func()) time.Duration {
		began := time.Now()
		for _, do := range all {
			do()
		}
		return time.Since(began)
	}
	few, many := time.Hour, time.Hour
	for range 15 {
		var all []func()
		for range 16 {
			all = append(all, prepare(n))
		}
		few, many = min(few, took(all...)), min(many, took(prepare(16*n)))
		if many < 6*few {
			return
		}
	}
	require.Less(t, many, 6*few, "%v for a few at a time", few)
}
