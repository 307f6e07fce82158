// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A closed gate lets one scrape through in each interval, however many there would be.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		assert.True(t, g.admit())
		assert.False(t, g.taken(), "it was open")
		assert.True(t, g.refused())
		assert.False(t, g.refused(), "it was closed")
		probes := 0
		const intervals = 1000
		for range intervals * 100 {
			time.Sleep(probeInterval / 100)
			if g.admit() {
				probes++
			}
		}
		assert.LessOrEqual(t, probes, intervals)
		assert.Greater(t, probes, intervals/2, "not every interval has one, but soon there is one")
		assert.True(t, g.taken())
		assert.True(t, g.admit())
		assert.True(t, g.admit())
	})
}

// Each target has its turn, though their schedules never shift against one another.
func TestGateLetsEachTargetProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, probes := newGate(), map[string]int{}
		g.refused()
		come := func(target string) {
			if g.admit() {
				probes[target]++
			}
		}
		const minutes = 10
		for range minutes * 30 {
			for quarter := range 4 {
				come("often")
				if quarter == 0 {
					come("next")
					come("last")
				}
				time.Sleep(probeInterval / 2)
			}
		}
		for _, target := range []string{"often", "next", "last"} {
			assert.Greater(t, probes[target], minutes, target)
		}
	})
}

// One that comes seldom is never kept waiting.
func TestGateLetsALoneTargetProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.refused()
		for range 100 {
			time.Sleep(2 * probeInterval)
			assert.True(t, g.admit())
		}
	})
}
