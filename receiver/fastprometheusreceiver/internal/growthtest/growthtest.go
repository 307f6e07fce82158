// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package growthtest tests that time grows no faster than the amount of work.
package growthtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// RequireLinear wants what is done to sixteen times as much to take about as long as to do it sixteen times: both are as
// long, so a busy machine lengthens both, if not by as much each time: what one of many attempts shows needs no other.
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
