// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	rand "math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// TestSumsAreConserved: whatever is admitted, collapsed, shed or overflows, the sums of the output equal those of the
// input.
func TestSumsAreConserved(t *testing.T) {
	racetest.Sequential(t)
	t.Run("first come", func(t *testing.T) { testSums(t, nil, policy.NameCollapse) })
	t.Run("adaptive", func(t *testing.T) { testSums(t, []string{"route"}, policy.NameCollapse) })
	t.Run("worst label", func(t *testing.T) { testSums(t, nil, policy.NameCollapseWorst) })
}

func testSums(t *testing.T, shareBy []string, collapse string) {
	shed, collapsed := int64(0), int64(0)
	few, crowd := uint64(15), 1
	if collapse == policy.NameCollapseWorst { // a label needs many values for that
		few, crowd = 4, 6
	}
	for seed := range seeds(t, few) {
		random := rand.New(rand.NewPCG(seed, 3))
		r := newRig(t, func(c *Config) {
			c.Defaults.Exceed.OnExceed = []string{collapse, "overflow"}
			c.Memory.MaxSeries = crowd * (5 + random.IntN(60))
			c.Rules = []RuleConfig{
				{Name: "service", GroupBy: []string{"service"}, MaxSeries: crowd * (2 + random.IntN(10)), LabelLimits: map[string]int{"user": random.IntN(4)}},
				{
					Name: "metric", GroupBy: []string{"metric"}, MaxSeries: crowd * (2 + random.IntN(10)),
					Exceed: ExceedConfig{KeepLabels: []string{"route"}}, Adaptive: AdaptiveConfig{ShareBy: shareBy},
				},
			}
		})
		want, got := map[string]int64{}, map[string]int64{}
		last := map[string]int64{}
		began := map[string]pcommon.Timestamp{}
		count := func(md pmetric.Metrics) {
			requireNoDuplicates(t, md)
			at := 0
			all := identities(md)
			for _, rm := range md.ResourceMetrics().All() {
				for _, sm := range rm.ScopeMetrics().All() {
					for _, m := range sm.Metrics().All() {
						for i := range amount.PointCount(m) {
							id := all[at]
							at++
							if amount.WhenAt(m, i).NoValue {
								continue
							}
							n, start := reading(m, i)
							if amount.ClassOf(m) == amount.ClassCumulative {
								if began[id] == start {
									require.GreaterOrEqual(t, n, last[id], "seed %d: %s counts up", seed, id)
									n, last[id] = n-last[id], n
								} else {
									last[id] = n
								}
								began[id] = start
							}
							got[m.Name()] += n
						}
					}
				}
			}
		}
		type source struct {
			point

			start time.Time
			total int64
		}
		var sources []*source
		for step := range 120 {
			r.clock = r.clock.Add(time.Duration(1+random.IntN(5)) * time.Second)
			for range crowd {
				if random.IntN(3) > 0 {
					continue
				}
				k := []kind{cumulative, delta, histogram, exponential, summary}[random.IntN(5)]
				sources = append(sources, &source{
					point: point{
						resource: attrs{"service": strconv.Itoa(random.IntN(2)), "pod": strconv.Itoa(random.IntN(3))},
						name:     fmt.Sprint("m", int(k)), kind: k,
						attrs: attrs{"user": strconv.Itoa(random.IntN(6)), "route": int64(random.IntN(3)), "id": int64(len(sources)<<8 | step)},
					},
					start: r.clock.Add(-time.Millisecond),
				})
			}
			if len(sources) > 0 && random.IntN(6) == 0 { // gone for ever
				at := random.IntN(len(sources))
				sources = append(sources[:at], sources[at+1:]...)
			}
			for _, s := range sources {
				if random.IntN(3) == 0 {
					continue
				}
				if random.IntN(15) == 0 { // restarts
					s.start, s.total = r.clock.Add(-time.Millisecond), 0
				}
				n := int64(random.IntN(20))
				want[s.name] += n
				s.total += n
				if s.kind != delta && s.kind != exponential {
					n = s.total
				}
				count(r.consume(r.timed(s.point, s.start, r.clock, n)))
			}
			if random.IntN(4) == 0 {
				r.epochs(1)
			}
			if random.IntN(4) == 0 {
				count(r.flushed(0))
			}
			if step == 60 { // new rules in between
				cfg := *r.cfg
				cfg.Rules = []RuleConfig{cfg.Rules[1], {Name: "new", MaxSeries: 8 * crowd, GroupBy: []string{"user"}}}
				r.Apply(&cfg)
			}
		}
		r.sink.Reset()
		count(r.flushed(time.Second))
		// An input that started before its output, because that was idle and restarted, has a first value that is
		// missing, and counted.
		unaccounted := int64(0)
		if lost, err := r.telemetry.GetMetric("otelcol_processor_cardinality_unaccounted_points"); err == nil {
			unaccounted = sumOf(lost, nil)
			require.Equal(t, unaccounted, sumOf(lost, attrs{"reason": "baseline"}))
			if shareBy == nil && collapse == policy.NameCollapse {
				require.LessOrEqual(t, unaccounted, int64(12)) // those that waited started earlier
			}
		}
		unaccounted += r.waited() // and were not sent again before their source was gone
		shed += r.shedSeriesOf("metric")
		collapsed += r.rejected("service", "max_series", policy.NameCollapseWorst) + r.rejected("metric", "max_series", policy.NameCollapseWorst) +
			r.rejected("new", "max_series", policy.NameCollapseWorst) + r.rejected(policy.RuleTotal, "max_series", policy.NameCollapseWorst)
		missing := int64(0)
		for name, n := range want {
			require.LessOrEqual(t, got[name], n, "seed %d, %s", seed, name)
			missing += n - got[name]
		}
		require.LessOrEqual(t, missing, unaccounted*19, "seed %d", seed)
		requireWithinLimits(t, r)
	}
	require.Equal(t, shareBy != nil, shed > 0)
	require.Equal(t, collapse == policy.NameCollapseWorst, collapsed > 0)
}
