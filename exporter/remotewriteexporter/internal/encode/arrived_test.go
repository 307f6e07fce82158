// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
)

// A batch is encoded like its parts, and for those that were sent it is recorded which points they are.
func TestABatchIsWhatItsPartsSay(t *testing.T) {
	e, _ := newEncoder(t, nil)
	oracle, _ := newEncoder(t, nil)
	const sent = 3
	var (
		loans [sent]handback.Loan
		back  int
	)
	pages := make([]pmetric.Metrics, sent)
	of := func(i int) pmetric.Metrics {
		md := page(0, 20, epoch)
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", fmt.Sprint("target-", i))
		return md
	}
	for i := range pages {
		pages[i] = of(i)
	}
	for round := range 4 {
		batch := pmetric.NewMetrics()
		for i, md := range pages {
			stamp(md, round)
			require.True(t, loans[i].Send(md, md.DataPointCount(), func() { back++ }))
			other := of(10 + i)
			stamp(other, round)
			other.ResourceMetrics().MoveAndAppendTo(batch.ResourceMetrics())
			md.ResourceMetrics().MoveAndAppendTo(batch.ResourceMetrics())
		}
		arrived := handback.Arrive(batch)
		require.Len(t, arrived, sent)
		require.NoError(t, oracle.Add(batch, ""))
		require.NoError(t, e.AddArrived(batch, "", arrived))
		handback.Return(arrived)
		require.Equal(t, sent*(round+1), back)
		got, _ := decode(t, flushAll(e, v2Zstd))
		want, _ := decode(t, flushAll(oracle, v2Zstd))
		require.Len(t, got, 2*sent*20)
		require.Equal(t, canonical(want), canonical(got))
	}
	for i := range loans {
		r, _ := loans[i].Note(e).(*recollection)
		require.NotNil(t, r)
		require.Len(t, r.points, 20)
	}
}

func stamp(md pmetric.Metrics, round int) {
	at := epoch.Add(time.Duration(round) * time.Minute)
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for _, dp := range m.Gauge().DataPoints().All() {
					dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
					dp.SetDoubleValue(float64(round))
				}
			}
		}
	}
}
