// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// exemplary returns a counter that always has the same exemplar.
func exemplary(n int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("landings")
	m.SetEmptySum().SetIsMonotonic(true)
	m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	dp := m.Sum().DataPoints().AppendEmpty()
	dp.SetTimestamp(pcommon.Timestamp(1_700_000_000_000+n) * 1_000_000)
	dp.SetDoubleValue(float64(n))
	x := dp.Exemplars().AppendEmpty()
	x.SetTimestamp(pcommon.Timestamp(1_700_000_000_000 * 1_000_000))
	x.SetDoubleValue(7)
	return md
}

// examples is a destination that counts the exemplars it accepts.
type examples struct {
	*received

	count func() int
}

func newExamples(t *testing.T) examples {
	var mu sync.Mutex
	n := 0
	d := newReceived(t, nil)
	d.setAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		series, err := decode(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return true
		}
		mu.Lock()
		defer mu.Unlock()
		for _, s := range series {
			n += len(s.Exemplars)
		}
		return false
	})
	return examples{d, func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}}
}

// TestExemplarsThatTheQueueDropsComeAgain: an exemplar is remembered when it is encoded, so that it is not sent twice;
// if the queue has no room for it, it is forgotten again.
func TestExemplarsThatTheQueueDropsComeAgain(t *testing.T) {
	for _, policy := range []string{onFullDropOldest, onFullDropNewest} {
		t.Run(policy, func(t *testing.T) {
			d := newExamples(t)
			well := d.answer
			d.fail(http.StatusServiceUnavailable)
			e := start(t, componenttest.NewNopHost(), func(c *Config) {
				c.Endpoint, c.Queue.Size, c.Queue.OnFull, c.ShutdownTimeout = d.URL, 500, policy, time.Millisecond
			})
			require.NoError(t, e.ConsumeMetrics(t.Context(), gauges(1, 0))) // is not dropped by any policy once it is in progress
			eventually(t, func() bool { return e.queue.Stats(0).Leased == 1 }, "it is under way")
			dropped := func() bool { return e.Snapshot().Destinations[0].Outcome.Dropped["queue_full"] > 0 }
			n := 0
			eventually(t, func() bool {
				n++
				_ = e.ConsumeMetrics(t.Context(), exemplary(n)) // refused if there is no room at all
				return dropped()
			}, "one is dropped")
			d.setAnswer(well)
			eventually(t, func() bool {
				n++
				_ = e.ConsumeMetrics(t.Context(), exemplary(n))
				return d.count() > 0
			}, "the exemplar arrives")
		})
	}
}

// TestExemplarsOfWhatIsRefusedComeAgain: callers that get an error, because the data was not stored or not delivered,
// retry it with its exemplars.
func TestExemplarsOfWhatIsRefusedComeAgain(t *testing.T) {
	d := newExamples(t)
	well := d.answer
	d.fail(http.StatusServiceUnavailable)
	e := start(t, componenttest.NewNopHost(), func(c *Config) {
		awaiting(d.URL)(c)
		c.Retry.MaxElapsedTime = 20 * time.Millisecond
	})
	require.Error(t, e.ConsumeMetrics(t.Context(), exemplary(1)))
	d.setAnswer(well)
	require.NoError(t, e.ConsumeMetrics(t.Context(), exemplary(1)))
	require.Equal(t, 1, d.count())
	require.NoError(t, e.ConsumeMetrics(t.Context(), exemplary(2)))
	require.Equal(t, 1, d.count(), "it has arrived, and is the same")
}
