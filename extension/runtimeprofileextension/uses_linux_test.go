// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A page that is back after each release is skipped, until it is time to check whether it still comes back.
func TestPagesInUseAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u uses
		left := func(wait time.Duration, there ...bool) (all []bool) {
			time.Sleep(wait)
			u.begin()
			for _, p := range there {
				all = append(all, u.next(p))
			}
			return all
		}
		// Pages that are used always, for a while, now and then, and never again.
		assert.Equal(t, []bool{false, false, false, false}, left(0, true, true, true, true), "who knows")
		assert.Equal(t, []bool{false, false, false, false}, left(3*time.Second, true, true, true, false))
		assert.Equal(t, []bool{true, true, false, false}, left(6*time.Second, true, true, false, false))
		for range leaves - 1 {
			assert.Equal(t, []bool{true, true, false, false}, left(time.Minute, true, true, true, false))
		}
		assert.Equal(t, []bool{false, false, false, false}, left(time.Minute, true, true, true, false), "to see whether they come back")
		assert.Equal(t, []bool{true, false, false, false}, left(time.Minute, true, false, true, false))
		assert.Equal(t, []bool{true, false, false, false}, left(time.Minute, true, true, true, true))
		assert.Equal(t, []bool{true, false, false, false}, left(time.Minute, true, true, true, true), "what comes once in a minute costs little")
		assert.Equal(t, []bool{false, false, false, false}, left(time.Second, false, true, true, true), "the kernel has taken it")
		assert.Equal(t, []bool{false, true, true, true}, left(time.Second, true, true, true, true))
	})
}
