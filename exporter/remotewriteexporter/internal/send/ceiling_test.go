// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// ask sends a request of the given size, in halves if necessary, to a server that accepts limit bytes. It returns how
// many were refused.
func ask(c *ceiling, bytes, limit int) (refusals int) {
	if raw, _ := c.limits(); raw > 0 && bytes > raw || bytes > limit {
		if raw == 0 || bytes <= raw {
			c.refused(bytes, bytes/4)
			refusals++
		}
		if bytes/2 < minSplit {
			return refusals
		}
		return refusals + ask(c, bytes/2, limit) + ask(c, bytes-bytes/2, limit)
	}
	c.delivered(bytes, bytes/4)
	return refusals
}

// TestCeilingComesDownAndGoesUpAgain: sizes that were refused for a while are tried again, soon and in ever larger
// steps.
func TestCeilingComesDownAndGoesUpAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ceiling{longest: time.Hour}
		for range 5 {
			ask(&c, 8<<20, 0)
			time.Sleep(time.Second)
		}
		raw, _ := c.limits()
		require.Equal(t, minSplit, raw)
		began := time.Now()
		for raw, _ = c.limits(); raw != 0; raw, _ = c.limits() {
			ask(&c, 8<<20, 8<<20)
			time.Sleep(100 * time.Millisecond)
		}
		require.Less(t, time.Since(began), 25*time.Second)
	})
}

// TestCeilingIsTriedRarely: a permanent limit causes few refusals.
func TestCeilingIsTriedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ceiling{longest: time.Hour}
		const limit = 1<<20 + 12345
		refusals := 0
		for range 24 * 3600 {
			refusals += ask(&c, 8<<20, limit)
			time.Sleep(time.Second)
			raw, _ := c.limits()
			require.GreaterOrEqual(t, raw, limit/2, "it does not sink below what is delivered")
		}
		require.Less(t, refusals, 50)
	})
}

func TestCeilingIsNotTriedByRequestsFarBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ceiling{longest: time.Hour}
		c.refused(8<<20, 2<<20)
		for range 100 {
			time.Sleep(time.Minute)
			c.delivered(1<<20, 1<<18)
		}
		raw, wire := c.limits()
		require.Equal(t, []int{4 << 20, 1 << 20}, []int{raw, wire})
	})
}

// TestRefusalsOnTheWayChangeNothing: several shards send requests that are too large at the same time.
func TestRefusalsOnTheWayChangeNothing(t *testing.T) {
	c := ceiling{longest: time.Hour}
	for range 16 {
		c.refused(8<<20, 2<<20)
	}
	raw, _ := c.limits()
	require.Equal(t, 4<<20, raw)
}
