// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Exemplars with only trace and span IDs take a fast path. All others, and those that only look like IDs, have the same
// result.
func TestExemplarsOfIDsAndOthers(t *testing.T) {
	const id = "0123456789abcdef0123456789ABCDEF"
	for _, k := range []struct {
		labels string
		trace  string
		span   string
		others map[string]any
	}{
		{`{}`, "", "", nil},
		{`{trace_id="` + id + `"}`, "0123456789abcdef0123456789abcdef", "", nil},
		{`{span_id="` + id[:16] + `",trace_id="` + id + `"}`, "0123456789abcdef0123456789abcdef", "0123456789abcdef", nil},
		{`{trace_id="` + id + `",user="u"}`, "0123456789abcdef0123456789abcdef", "", map[string]any{"user": "u"}},
		{`{trace_id="ab"}`, "000000000000000000000000000000ab", "", nil},
		{`{trace_id="` + id + `00"}`, "0123456789abcdef0123456789abcdef", "", nil},
		{`{trace_id="` + id[:31] + `x"}`, "", "", map[string]any{"trace_id": id[:31] + "x"}},
		{`{Trace_ID="` + id + `"}`, "0123456789abcdef0123456789abcdef", "", nil},
		{`{span_id=""}`, "", "", nil},
	} {
		target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true}), 1)
		for range 3 {
			r := show(target, start, typeOM, "# TYPE a counter\na_total 1 # "+k.labels+" 0.5\n# EOF\n", 1<<20)
			require.NoError(t, r.Err, k.labels)
			found := 0
			eachNumber(r.Metrics, func(dp pmetric.NumberDataPoint) {
				for _, x := range dp.Exemplars().All() {
					found++
					require.Equal(t, k.trace, traceText(x.TraceID()), k.labels)
					require.Equal(t, k.span, spanText(x.SpanID()), k.labels)
					require.InDelta(t, 0.5, x.DoubleValue(), 0)
					if k.others == nil {
						require.Zero(t, x.FilteredAttributes().Len(), k.labels)
					} else {
						require.Equal(t, k.others, x.FilteredAttributes().AsRaw(), k.labels)
					}
				}
			})
			require.Equal(t, 1, found, k.labels)
			r.Release()
		}
	}
}

func traceText(id pcommon.TraceID) string {
	if id.IsEmpty() {
		return ""
	}
	return id.String()
}

func spanText(id pcommon.SpanID) string {
	if id.IsEmpty() {
		return ""
	}
	return id.String()
}
