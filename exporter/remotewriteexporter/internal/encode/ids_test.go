// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// traced returns a page of counters of which one in three has an exemplar, whose ids may be similar to the previous
// ones, and the expected labels of each. Some have an additional label.
func traced(r *rand.Rand, series int, alike bool) (pmetric.Metrics, map[string]string) {
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	want := map[string]string{}
	for i := range series {
		m := metrics.AppendEmpty()
		m.SetName(fmt.Sprintf("requests_%d", i))
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		dp := addPoint(sum.DataPoints(), float64(r.IntN(1e9)), epoch, "route", fmt.Sprintf("/api/v%d/things", i/7))
		if i%3 > 0 {
			continue
		}
		var trace pcommon.TraceID
		var span pcommon.SpanID
		binary.BigEndian.PutUint64(trace[8:], r.Uint64())
		if !alike {
			binary.BigEndian.PutUint64(trace[:], r.Uint64())
		}
		binary.BigEndian.PutUint64(span[:], r.Uint64())
		x := dp.Exemplars().AppendEmpty()
		x.SetTimestamp(pcommon.NewTimestampFromTime(epoch.Add(time.Duration(i) * time.Millisecond)))
		x.SetDoubleValue(float64(i))
		x.SetTraceID(trace)
		x.SetSpanID(span)
		want[m.Name()+"_total"] = fmt.Sprintf("%s %s", span, trace)
	}
	return md, want
}

// Exemplars have the right ids wherever these are among the symbols: in a request with everything of a flush, in
// several requests, and in one that was to contain everything and has no room for it.
func TestExemplarsHaveTheirIDs(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"one request":       nil,
		"several requests":  func(c *Config) { c.MaxSamples = 500 },
		"no room for one":   func(c *Config) { c.MaxRawBytes = 64 << 10 },
		"as large as it is": func(c *Config) { c.MaxSamples = 3000 },
	} {
		for _, f := range formats {
			for _, alike := range []bool{false, true} {
				r := rand.New(rand.NewPCG(3, 5))
				e, d := newEncoder(t, change)
				for range 2 {
					md, want := traced(r, 3000, alike)
					require.NoError(t, e.Add(md, ""))
					series, _ := decode(t, flushAll(e, f))
					require.Len(t, series, 3000)
					for _, s := range series {
						var got []string
						for _, x := range s.Exemplars {
							got = append(got, x.Labels[0].Value+" "+x.Labels[1].Value)
							assert.Equal(t, []string{"span_id", "trace_id"}, []string{x.Labels[0].Name, x.Labels[1].Name})
						}
						require.Equal(t, want[s.Labels[0].Value], strings.Join(got, ", "), "%s, %v", name, f)
					}
				}
				require.Empty(t, d.counts)
			}
		}
	}
}

// The ids of an exemplar are 24 random bytes, which are 48 in hex. They take little more than 24 bytes.
func TestIDsTakeWhatIsRandomOfThem(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	size := func(exemplars bool) (n int) {
		e, _ := newEncoder(t, func(c *Config) { c.Exemplars = exemplars })
		md, _ := traced(r, 6000, false)
		require.NoError(t, e.Add(md, ""))
		for _, b := range flushAll(e, v2Zstd) {
			n += len(b.Body())
		}
		return n
	}
	each := float64(size(true)-size(false)) / 2000
	t.Logf("%.1f B an exemplar", each)
	assert.Less(t, each, 42.0)
}
