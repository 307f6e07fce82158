// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package exemplars

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/internal/racetest"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/store"
)

func TestLastExemplarsAreBounded(t *testing.T) {
	racetest.Sequential(t)
	var x Sent
	for i := range uint64(2 * maxLastExemplars) {
		place := store.Mix(0, i)
		assert.False(t, x.Repeats(place, i))
		assert.True(t, x.Repeats(place, i))
		assert.False(t, x.Repeats(place, i+1))
	}
	assert.Len(t, x.entries, maxLastExemplars)
	x = Sent{}
	for i := range uint64(maxLastExemplars / 4) {
		x.Repeats(store.Mix(0, i), i)
	}
	again := 0
	for i := range uint64(maxLastExemplars / 4) {
		if !x.Repeats(store.Mix(0, i), i) {
			again++
		}
	}
	assert.Less(t, again, maxLastExemplars/400, "growing loses next to none")
}

// Most of the room is in use, and next to nothing is lost.
func TestLastExemplarsTakeLittleRoom(t *testing.T) {
	var x Sent
	const n = 113_000
	for i := range uint64(n) {
		x.Repeats(store.Mix(0, i), i)
	}
	assert.Less(t, len(x.entries), n*7/4)
	again := 0
	for i := range uint64(n) {
		if !x.Repeats(store.Mix(0, i), i) {
			again++
		}
	}
	assert.Less(t, again, n/1000)
}
