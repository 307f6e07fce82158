// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fleettest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func encoded(tb testing.TB, md pmetric.Metrics) string {
	b, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(tb, err)
	return string(b)
}

func TestTheSameNumbersComeEachTime(t *testing.T) {
	page, err := os.ReadFile("../../testdata/pages/node.txt")
	require.NoError(t, err)
	one, two, other := New(string(page), 1, 0.3), New(string(page), 1, 0.3), New(string(page), 2, 0.3)
	last := ""
	for at := range 3 {
		md := one.Scrape(10)
		require.Equal(t, one.Points(), md.DataPointCount())
		got := encoded(t, md)
		require.Equal(t, got, encoded(t, two.Scrape(10)))
		require.NotEqual(t, got, encoded(t, other.Scrape(10)))
		require.NotEqual(t, last, got, "%d: numbers move", at)
		last = got
	}
}

func TestAShareOfTheSeriesMoves(t *testing.T) {
	page, err := os.ReadFile("../../testdata/pages/node.txt")
	require.NoError(t, err)
	for _, share := range []float64{0, 0.3, 1} {
		target := New(string(page), 7, share)
		require.InDelta(t, share, float64(len(target.moves))/float64(target.Points()), 0.1)
	}
}
