// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package racetest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSkipsInBriefRunsAlone(t *testing.T) {
	for name, skip := range map[string]func(testing.TB){
		"sequential": Sequential,
		"smaller":    func(tb testing.TB) { SmallerIn(tb, "another") },
	} {
		var skipped bool
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { skipped = t.Skipped() })
			skip(t)
		})
		require.Equal(t, Enabled && testing.Short(), skipped, name)
	}
}

func TestSizeOfBriefRuns(t *testing.T) {
	want := 1000
	if Enabled && testing.Short() {
		want = 10
	}
	require.Equal(t, want, Size(1000, 10))
}
