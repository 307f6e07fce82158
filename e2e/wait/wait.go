// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package wait is the only place where the harness sleeps.
package wait

import (
	"context"
	"testing"
	"time"
)

const (
	// The first check comes soon, because most conditions hold soon.
	firstPause = 5 * time.Millisecond
	// Later checks are rare, so that they take little CPU from the processes under test.
	longestPause = 250 * time.Millisecond
)

// Until polls cond, with growing pauses, until it holds. If it does not hold within timeout, the test fails with cond's
// last reason.
//
// cond runs on the caller's goroutine, so it may end the test itself.
func Until(t testing.TB, timeout time.Duration, cond func() (ok bool, why string)) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		ok, why := cond()
		if ok {
			return
		}
		left := time.Until(deadline)
		if left <= 0 {
			t.Fatalf("waited %v in vain: %s", timeout, why)
			return
		}
		time.Sleep(min(pause, left))
	}
}

// Context returns a context that ends when cond holds, and at the latest with the test. With it, a client stops once
// its server has reached a state.
func Context(t testing.TB, cond func() bool) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		for !cond() && Pause(ctx, firstPause) {
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return ctx
}

// Pause waits for d, and reports whether d passed before ctx ended. Slow servers use it, so that they do not outlive
// their test.
func Pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
