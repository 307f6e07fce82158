// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRequestsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace{rate: Rate{Bytes: 1000}}
		require.Zero(t, p.reserve(600, 1<<30), "nothing was sent lately")
		require.Zero(t, p.reserve(600, 0), "still less than a second's worth before it")
		require.Equal(t, 200*time.Millisecond, p.reserve(5000, 0), "it is as large as it is")
		require.Equal(t, 5200*time.Millisecond, p.reserve(1, 0), "but paid for")
		time.Sleep(time.Hour)
		require.Zero(t, p.reserve(1000, 0))
		require.Zero(t, p.reserve(1, 0))
		require.Positive(t, p.reserve(1, 0), "an hour of silence is not made up for")
	})
}

func TestWhateverIsScarcerPaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace{rate: Rate{Bytes: 1000, Samples: 10}}
		require.Zero(t, p.reserve(100, 20))
		require.Equal(t, time.Second, p.reserve(3000, 0))
		require.Equal(t, 2100*time.Millisecond, p.reserve(0, 0))
		p = pace{}
		for range 100 {
			require.Zero(t, p.reserve(1<<30, 1<<30))
		}
	})
}
