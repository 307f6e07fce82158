// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// recorder stands in for a test that is expected to fail.
type recorder struct {
	testing.TB

	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }

func TestUntilReturnsAsSoonAsTheConditionHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, looks := time.Now(), 0
		Until(t, time.Minute, func() (bool, string) {
			looks++
			return looks == 4, "not yet"
		})
		assert.Equal(t, firstPause+2*firstPause+4*firstPause, time.Since(start))
	})
}

func TestUntilFailsWithTheLastReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, looks, r := time.Now(), 0, &recorder{TB: t}
		Until(r, time.Second, func() (bool, string) {
			looks++
			return false, fmt.Sprintf("look %d", looks)
		})
		assert.Equal(t, time.Second, time.Since(start), "the last look is at the deadline")
		assert.Equal(t, fmt.Sprintf("waited 1s in vain: look %d", looks), r.failure)
		assert.Less(t, looks, 12, "pauses grow")
	})
}

func TestContextEndsWhenTheConditionHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx := Context(t, func() bool { return time.Since(start) >= time.Second })
		<-ctx.Done()
		assert.Equal(t, time.Second, time.Since(start))
		Context(t, func() bool { return false }) // it ends with the test
	})
}

func TestPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		assert.True(t, Pause(t.Context(), time.Second))
		assert.Equal(t, time.Second, time.Since(start))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.False(t, Pause(ctx, time.Hour))
		assert.Equal(t, 2*time.Second, time.Since(start))
		assert.False(t, Pause(ctx, 0))
		assert.True(t, Pause(t.Context(), 0))
	})
}
