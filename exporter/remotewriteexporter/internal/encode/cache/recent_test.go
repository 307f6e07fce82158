// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Recent sets of values are forgotten with each sweep, and their memory is kept only as long as the points they were
// for.
func TestRecentSetsAreForgotten(t *testing.T) {
	var r recent
	set := func(points int) *packed {
		few, _ := r.candidates(ids{1, 2}, points)
		return &few[0]
	}
	for range 10 {
		set(8 * fewRecent) // grows
	}
	require.GreaterOrEqual(t, len(r), 4*fewRecent)
	set(0).number = 7
	memory := &r[0]
	r.forget(8 * fewRecent)
	assert.Zero(t, *set(0))
	assert.Same(t, memory, &r[0])
	r.forget(fewRecent)
	assert.Empty(t, r)
}
