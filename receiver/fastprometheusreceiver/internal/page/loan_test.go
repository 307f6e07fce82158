// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
)

// A note on a loan lasts as long as each point stays in its place with its attributes. If it lasted longer, its owner
// would assign points to the wrong series.
func TestNotesLastAsLongAsPoints(t *testing.T) {
	const (
		page  = "# TYPE a gauge\na{b=\"1\"} 1\na{b=\"2\"} 2\n# TYPE h_total counter\nh_total{b=\"1\"} 3\n"
		other = "# TYPE a gauge\na{b=\"1\"} 4\na{b=\"2\"} 5\n# TYPE h_total counter\nh_total{b=\"1\"} 6\n"
	)
	pages := []string{
		page, other, page, // the same series
		"# TYPE a gauge\na{b=\"2\"} 2\na{b=\"1\"} 1\n# TYPE h_total counter\nh_total{b=\"1\"} 3\n", // in another order
		page,
		"# TYPE a gauge\na{b=\"1\"} 1\na{b=\"3\"} 2\n# TYPE h_total counter\nh_total{b=\"1\"} 3\n", // one series replaces another
		page,
		"# TYPE a gauge\na{b=\"1\"} 1\n# TYPE h_total counter\nh_total{b=\"1\"} 3\n", // one series is missing
		page,
		"# TYPE a gauge\na{b=\"1\"} 1\na{b=\"2\"} 2\na{b=\"3\"} 2\n# TYPE h_total counter\nh_total{b=\"1\"} 3\n", // there is one more
		page, other, page, other,
	}
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
	targets := []*Target{testTarget(j, 1), testTarget(j, 2)}
	type known struct {
		at   pcommon.Map
		said map[string]any
	}
	owner, at, kept := new(int), start, 0
	for round := range 4 {
		for i, text := range pages {
			at = at.Add(15e9)
			r := showBytes(targets[(i+round)%2], at, typeText, []byte(text))
			require.NoError(t, r.Err)
			loan := r.Loan()
			require.NotNil(t, loan)
			handback.Lend(t.Context(), loan, r.Metrics)
			var now []known
			eachNumber(r.Metrics, func(dp pmetric.NumberDataPoint) {
				now = append(now, known{dp.Attributes(), dp.Attributes().AsRaw()})
			})
			if noted, ok := loan.Note(owner).([]known); ok {
				kept++
				require.Equal(t, noted, now, "round %d, page %d", round, i)
			}
			loan.Leave(owner, now)
			r.Release()
		}
	}
	if !handback.Poisons() {
		require.Positive(t, kept, "some notes last")
	}
	r := showBytes(testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1), start, typeText, []byte(page))
	require.Nil(t, r.Loan(), "what is not used again is not lent")
}
