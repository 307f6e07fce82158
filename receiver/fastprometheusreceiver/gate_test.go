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
		for range 10 * 1000 {
			time.Sleep(probeInterval / 1000)
			if g.admit() {
				probes++
			}
		}
		assert.Equal(t, 10, probes)
		assert.True(t, g.taken())
		assert.True(t, g.admit())
		assert.True(t, g.admit())
	})
}
