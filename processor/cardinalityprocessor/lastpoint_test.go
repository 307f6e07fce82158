// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/fair"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/overflow"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// parting is the result of each further point of a series that lost its place.
var parting = map[kind][]string{
	gauge:       {"mark", "", ""},
	upDown:      {"mark", "", ""},
	cumulative:  {"value", "mark", "", ""},
	histogram:   {"value", "mark", "", ""},
	summary:     {"value", "mark", "", ""},
	delta:       {"", ""},
	exponential: {"", ""},
}

// fate returns the result of a point.
func (r *rig) fate(p point) string {
	r.clock = r.clock.Add(time.Second)
	md := r.consume(r.timed(p, time.Unix(996_400, 0), r.clock, r.clock.Unix()))
	if md.DataPointCount() == 0 {
		return ""
	}
	m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
	if amount.WhenAt(m, 0).NoValue {
		require.Equal(r.t, p.identity(), identities(md)[0])
		n, _ := reading(m, 0)
		require.Zero(r.t, n)
		return "mark"
	}
	return "value"
}

func (r *rig) endMarkers() int64 {
	got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_end_markers")
	if err != nil {
		return 0
	}
	return sumOf(got, nil)
}

// demoted gives aSeries(0) a place and takes it away again.
var demoted = map[string]func(t *testing.T, p point, config func(*Config)) *rig{
	"idle": func(t *testing.T, p point, config func(*Config)) *rig {
		r := newRig(t, config)
		require.Equal(t, "value", r.fate(p))
		r.idle()
		require.Equal(t, []bool{true, true}, r.passes(aSeries(1), aSeries(2)))
		return r
	},
	"shed": func(t *testing.T, p point, config func(*Config)) *rig {
		r := newRig(t, func(c *Config) {
			config(c)
			c.Rules[0].Adaptive.ShareBy = []string{"service"}
		})
		first := aSeries(1)
		require.Len(t, r.send(first), 1)
		r.epochs(1)
		require.Equal(t, "value", r.fate(p))
		later := aSeries(2)
		later.kind, later.resource = delta, attrs{"service": "later"}
		for range 2 * fair.RoundEpochs {
			r.send(later)
			r.send(first)
			r.epochs(1)
		}
		require.Len(t, r.send(later), 1)
		return r
	},
	"restart": func(t *testing.T, p point, config func(*Config)) *rig {
		before := newRig(t, config)
		require.Equal(t, "value", before.fate(p))
		before.idle()
		require.Equal(t, []bool{true, true}, before.passes(aSeries(1), aSeries(2)))
		host := newMemory()
		before.keep(host)
		require.NoError(t, before.Snapshot.Save(t.Context()))
		before.Snapshot.Storage = nil
		r := newRig(t, withStorage(config))
		require.NoError(t, r.begin(host))
		r.clock = before.clock
		return r
	},
}

// A series that loses its place ends exactly once, for any reason, and wherever its points go.
func TestLastPoint(t *testing.T) {
	for why, demote := range demoted {
		for _, onExceed := range []string{"drop", "overflow", "collapse"} {
			for k := range kinds {
				t.Run(why+"/"+onExceed+"/"+strconv.Itoa(int(k)), func(t *testing.T) {
					p := aSeries(0)
					p.kind, p.attrs = k, attrs{"user": "u"}
					r := demote(t, p, overflowing(2, func(rule *RuleConfig) {
						rule.Exceed = ExceedConfig{OnExceed: []string{onExceed, "overflow"}, Gauge: policy.NameLast}
						if onExceed == "drop" {
							rule.Exceed.OnExceed = []string{"drop"}
						}
					}))
					var got []string
					for range parting[k] {
						got = append(got, r.fate(p))
					}
					require.Equal(t, parting[k], got)
					marks := int64(0)
					for _, what := range got {
						if what == "mark" {
							marks++
						}
					}
					require.Equal(t, marks, r.endMarkers())
					requireWithinLimits(t, r)
				})
			}
		}
	}
}

// If a label has too many values when a series comes back, it is collapsed, and the series ends.
func TestLastPointOfCollapsed(t *testing.T) {
	for k := range kinds {
		r := newRig(t, overflowing(10, func(rule *RuleConfig) {
			rule.LabelLimits = map[string]int{"user": 1}
			rule.Exceed.Gauge = policy.NameLast
		}))
		p := point{name: "m", kind: k, attrs: attrs{"user": "a"}}
		require.Equal(t, "value", r.fate(p))
		r.idle()
		require.Len(t, r.send(point{name: "m", attrs: attrs{"user": "b"}}), 1)
		for _, want := range parting[k] {
			require.Equal(t, want, r.fate(p), "kind %d", k)
		}
		require.Positive(t, r.rejected("r", "label_limit", "collapse")+r.rejected("r", "label_limit", "overflow"))
	}
}

// A counter's growth elsewhere is counted from its last value: nothing is lost, nothing counts twice.
func TestLastPointIsTheBaseline(t *testing.T) {
	for why, demote := range demoted {
		p := aSeries(0)
		r := demote(t, p, overflowing(2))
		r.flushed(0)
		start := r.clock.Add(-time.Minute) // recent: everything would count
		send := func(n int64) {
			r.clock = r.clock.Add(time.Second)
			r.consume(r.timed(p, start, r.clock, n))
		}
		send(1000)
		send(1010)
		send(1025)
		m := onlyMetric(t, r.flushed(time.Second))
		n, _ := reading(m, 0)
		require.Equal(t, int64(25), n, why)
		require.Equal(t, int64(1), r.gauge("overflow_members", ""))
		if lost, err := r.telemetry.GetMetric("otelcol_processor_cardinality_unaccounted_points"); err == nil {
			require.Zero(t, sumOf(lost, nil), why)
		}
	}
}

// A series that passed by itself is not counted from its start elsewhere, even if there was no memory for it at first.
func TestLastPointWithoutMemoryIsNotCountedTwice(t *testing.T) {
	p := aSeries(0)
	r := demoted["idle"](t, p, overflowing(2))
	budget := r.Overflow.Budget
	r.Overflow.Budget = 0
	require.Equal(t, []string{"value", "mark", "", ""}, []string{r.fate(p), r.fate(p), r.fate(p), r.fate(p)})
	r.Overflow.Budget = budget
	start := r.clock
	for _, n := range []int64{500, 503} {
		r.clock = r.clock.Add(time.Second)
		require.Zero(t, r.consume(r.timed(p, start, r.clock, n)).DataPointCount())
	}
	n, _ := reading(onlyMetric(t, r.flushed(time.Second)), 0)
	require.Equal(t, int64(3), n)
}

func TestNoLastPointWithoutNeed(t *testing.T) {
	p := aSeries(0)
	t.Run("it finds a place again", func(t *testing.T) {
		r := demoted["idle"](t, p, overflowing(3))
		require.Equal(t, []string{"value", "value", "value"}, []string{r.fate(p), r.fate(p), r.fate(p)})
		require.Zero(t, r.endMarkers())
	})
	t.Run("it says so itself", func(t *testing.T) {
		r := demoted["idle"](t, p, overflowing(2))
		md := metricsOf(p)
		dp := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0)
		dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		require.Equal(t, 1, r.consume(md).DataPointCount())
		require.Empty(t, r.fate(p))
		require.Zero(t, r.endMarkers())
	})
	t.Run("it is let through by sample", func(t *testing.T) {
		r := demoted["idle"](t, p, overflowing(2, func(rule *RuleConfig) {
			rule.Exceed.OnExceed, rule.Exceed.SampleRate = []string{"sample"}, 0.999999
		}))
		require.Equal(t, []string{"value", "value", "value"}, []string{r.fate(p), r.fate(p), r.fate(p)})
	})
	t.Run("it never had a place", func(t *testing.T) {
		r := demoted["idle"](t, p, overflowing(2))
		require.Empty(t, r.fate(aSeries(5)))
	})
	t.Run("it is a dry run", func(t *testing.T) {
		r := demoted["idle"](t, p, func(c *Config) {
			overflowing(2)(c)
			c.Mode = policy.ModeDryRun
		})
		require.Equal(t, []string{"value", "value", "value"}, []string{r.fate(p), r.fate(p), r.fate(p)})
		require.Equal(t, int64(2), r.rejected("r", "max_series", "overflow"), "as if it were none")
	})
}

// Series that left and do not come back are forgotten, and take no more memory than a quarter of the others before.
func TestWhoLeftIsForgotten(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Memory.MaxSeries = 400 })
	for round := range 5 {
		for i := range 400 {
			r.send(aSeries(round*400 + i))
		}
		r.idle()
		require.Equal(t, 100, r.Limiter.Groups.Set(series.LeftIdle).Members)
		requireWithinLimits(t, r)
	}
	r.idle()
	require.Zero(t, r.Limiter.Groups.Set(series.LeftIdle).Members)
	require.Zero(t, r.Limiter.Series.Len())
}

// A series made here ends once, and the end is sent again if it was not accepted.
func TestEndMarkersOfWhatIsMadeHere(t *testing.T) {
	for k := range kinds {
		r := newRig(t, overflowing(1, func(rule *RuleConfig) { rule.Exceed.Gauge = policy.NameLast }))
		next := &refusing{Metrics: r.sink}
		r.next = next
		r.send(point{name: "other"})
		p := aSeries(1)
		p.kind = k
		require.Empty(t, r.fate(p))
		marks, values := 0, 0
		flush := func() {
			md := r.flushed(time.Second)
			requireNoDuplicates(t, md)
			for range md.DataPointCount() {
				if m := onlyMetric(t, md); amount.WhenAt(m, 0).NoValue {
					marks++
				} else {
					values++
				}
			}
		}
		flush()
		require.Equal(t, 1, values, "kind %d", k)
		for i := range overflow.OverEpochs + 4 {
			r.epochs(1)
			next.err = nil
			if i%2 == 0 {
				next.err = errors.New("busy")
			}
			flush()
		}
		want := 1
		if k == delta || k == exponential {
			want = 0
		}
		require.Equal(t, want, marks, "kind %d", k)
		outputs, members, used := r.Overflow.Sizes()
		require.Zero(t, int64(outputs+members)+used)
		require.Equal(t, int64(want), r.endMarkers())
	}
}
