// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promconfig

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]string{
		"30s": "30s", "1m30s": "1m30s", "1d": "24h", "2w": "336h", "90s": "1m30s", "1h": "1h", "10ms": "10ms", "1.5h": "1h30m", "0": "0s", "1h0m5s": "1h0m5s",
	} {
		d, err := Duration(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, GoDuration(d))
		again, err := time.ParseDuration(GoDuration(d))
		require.NoError(t, err)
		assert.Equal(t, d, again)
	}
	for _, text := range []string{"a", "5", "5 s", "-5s", "1i"} {
		_, err := Duration(text)
		assert.Error(t, err, text)
	}
}

func TestDurationsBeyondAllBounds(t *testing.T) {
	for _, text := range []string{"300y", "9223372036.854775808s", "99999999999999999999w"} {
		_, err := Duration(text)
		require.ErrorContains(t, err, "too long", text)
	}
	d, err := Duration("290y")
	require.NoError(t, err)
	assert.Equal(t, 290*365*24*time.Hour, d)
}
