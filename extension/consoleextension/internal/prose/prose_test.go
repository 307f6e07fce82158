// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbersInSentences(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.314: "0.31", 9.996: "10", 45.55: "45.5", 999.6: "1k", 45_512: "45.5k", 1.2e6: "1.2M"} {
		require.Equal(t, want, Short(n))
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -12345: "-12,345", 1234567: "1,234,567"} {
		require.Equal(t, want, Count(n))
	}
	for share, want := range map[float64]string{0: "0%", 0.0005: "<0.1%", 0.012: "1.2%", 0.85: "85%", 1: "100%"} {
		require.Equal(t, want, Percent(share))
	}
}

func TestWhatIsLongIsCutBetweenCharacters(t *testing.T) {
	require.Equal(t, "short", Cut("short", 5))
	require.Equal(t, "gäns…", Cut("gänsesäger", 5))
	require.Equal(t, "g…", Cut("gänsesäger", 2))
}
