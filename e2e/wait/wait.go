// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package wait is the one place where the harness lets time pass.
package wait

import (
	"context"
	"testing"
	"time"
)

const (
	// The first look comes soon, because most conditions hold soon.
	firstPause = 5 * time.Millisecond
	// Later looks are rare enough not to take a core from what is being watched.
	longestPause = 250 * time.Millisecond
)

// Until polls cond with growing pauses until it holds. When it does not hold
// within timeout, the test fails with the last reason cond gave.
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

// Context returns a context that ends when cond holds, and with the test at the
// latest. It is how a client gives up once its server is where it should be.
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

// Pause lets d pass and reports whether it passed before ctx ended. It is how a
// server plays slow without outliving its test.
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
