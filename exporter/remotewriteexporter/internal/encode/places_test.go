// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A series whose attributes are in a different order each time is translated each time, once the cache would otherwise
// keep many copies of them; and it is sent in any order.
func TestManyAttributesTakeManyPlaces(t *testing.T) {
	const attributes, sent = 640, 40
	const placeAttributes, wideShare = 8, 8
	const most = 8 * wideShare * attributes / placeAttributes
	e, d := newEncoder(t, func(c *Config) { c.Cache.MaxSeries = most })
	r := rand.New(rand.NewPCG(1, 2))
	shuffled := func(n int) pmetric.Metrics {
		md := pmetric.NewMetrics()
		m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("m")
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(epoch) + pcommon.Timestamp(n)*1e9)
		p.SetDoubleValue(float64(n))
		for _, i := range r.Perm(attributes) {
			p.Attributes().PutStr(fmt.Sprint("label_", i), fmt.Sprint(i))
		}
		return md
	}
	for n := range sent {
		require.NoError(t, e.Add(shuffled(n), ""))
		require.LessOrEqual(t, e.Stats().Series, most)
	}
	require.Equal(t, 8*attributes/placeAttributes, e.Stats().Series)
	samples := 0
	series, _ := decode(t, flushAll(e, v2Zstd))
	for _, s := range series {
		require.Len(t, s.Labels, attributes+1)
		samples += len(s.Samples)
	}
	require.Equal(t, sent, samples)
	require.Zero(t, d.total())
	e.Expire()
	require.LessOrEqual(t, e.Stats().Series, most, "what is left takes as many places")
}
