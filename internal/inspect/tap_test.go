// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// geese returns gauges of some flocks, all with the same value.
func geese(flocks ...string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("job", "pond")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("geese")
	points := m.SetEmptyGauge().DataPoints()
	for _, flock := range flocks {
		p := points.AppendEmpty()
		p.SetIntValue(1)
		p.SetTimestamp(1)
		p.Attributes().PutStr("flock", flock)
		p.Attributes().PutStr("sex", "f")
	}
	return md
}

// look returns the glance of an observer while something passes.
func look(t *testing.T, tap *Tap, pass func()) (seen Glance) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			glance, ok, err := tap.Look(t.Context())
			assert.True(t, ok)
			assert.NoError(t, err)
			seen = glance
		}()
		synctest.Wait()
		pass()
		<-done
	})
	return seen
}

func fates(g Glance) map[string]string {
	out := map[string]string{}
	for _, p := range g.Points {
		to := ""
		if p.After != nil {
			to = " " + p.After.Attributes[0].Value + " " + p.After.Value
		}
		out[p.Attributes[0].Value] = p.Fate + to
	}
	return out
}

func TestAProcessorsPointsAreFollowed(t *testing.T) {
	var tap Tap
	numbers := func(md pmetric.Metrics) pmetric.NumberDataPointSlice {
		return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
	}
	md := geese("kept", "gone", "renamed", "counted")
	got := look(t, &tap, func() {
		p := tap.Before(md)
		points := numbers(md)
		points.At(2).Attributes().PutStr("flock", "other")
		points.At(3).SetIntValue(7)
		points.RemoveIf(func(p pmetric.NumberDataPoint) bool {
			flock, _ := p.Attributes().Get("flock")
			return flock.Str() == "gone"
		})
		p.After(md)
	})
	require.Equal(t, map[string]string{"kept": FatePassed, "gone": FateGone, "renamed": FateGone, "counted": FateChanged + " counted 7"}, fates(got),
		"with other labels it is another series")
	require.Equal(t, []int{4, 3}, []int{got.In, got.Out})
	require.Equal(t, []Label{{"job", "pond"}}, got.Points[0].Resource)
	require.Equal(t, "gauge", got.Points[0].Kind)
}

// A series that is gone did not become another one that existed before, however similar they are.
func TestWhatIsGoneIsNoOther(t *testing.T) {
	var tap Tap
	md := geese("a", "b")
	got := look(t, &tap, func() {
		p := tap.Before(md)
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().RemoveIf(func(p pmetric.NumberDataPoint) bool {
			flock, _ := p.Attributes().Get("flock")
			return flock.Str() == "a"
		})
		p.After(md)
	})
	require.Equal(t, map[string]string{"a": FateGone, "b": FatePassed}, fates(got))
}

func TestHugeBatchesAreNotCompared(t *testing.T) {
	var tap Tap
	flocks := make([]string, maxCompared+1)
	for i := range flocks {
		flocks[i] = fmt.Sprint(i)
	}
	md := geese(flocks...)
	got := look(t, &tap, func() { tap.Before(md).After(md) })
	require.Len(t, got.Points, shownPoints)
	for _, p := range got.Points {
		require.Equal(t, FateUnknown, p.Fate)
	}
	again := look(t, &tap, func() { tap.Before(md).After(md) })
	require.NotEqual(t, got.Points[0].Attributes, again.Points[0].Attributes, "others each time")
}

func TestOneBatchIsShownToAllWhoWait(t *testing.T) {
	var tap Tap
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan Glance, maxLookers)
		for range maxLookers {
			go func() {
				glance, ok, err := tap.Look(t.Context())
				assert.True(t, ok)
				assert.NoError(t, err)
				seen <- glance
			}()
		}
		synctest.Wait()
		_, ok, err := tap.Look(t.Context())
		require.False(t, ok, "there are too many")
		require.NoError(t, err)
		tap.Metrics(geese("a"))
		for range maxLookers {
			require.Len(t, (<-seen).Points, 1)
		}
		require.Nil(t, tap.Before(geese("b")), "nobody waits any more")
	})
}

func TestWhoStopsWaitingIsForgotten(t *testing.T) {
	var tap Tap
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok, err := tap.Look(ctx)
	require.True(t, ok)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, tap.open.Load())
	require.Nil(t, tap.Before(geese("a")))
}

func TestNobodyLooksCostsNothing(t *testing.T) {
	var tap Tap
	md := geese("a")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		tap.Metrics(md)
		tap.Before(md).After(md)
	}))
}

func TestEverySignalAndTypeIsShown(t *testing.T) {
	var tap Tap
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	add := func(name string) pmetric.Metric {
		m := metrics.AppendEmpty()
		m.SetName(name)
		return m
	}
	add("sum").SetEmptySum().DataPoints().AppendEmpty().SetDoubleValue(0.5)
	stale := add("stale").SetEmptyGauge().DataPoints().AppendEmpty()
	stale.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	h := add("histogram").SetEmptyHistogram().DataPoints().AppendEmpty()
	h.SetCount(3)
	h.SetSum(4)
	h.BucketCounts().FromRaw([]uint64{1, 2})
	add("exponential").SetEmptyExponentialHistogram().DataPoints().AppendEmpty().SetCount(2)
	add("summary").SetEmptySummary().DataPoints().AppendEmpty().SetCount(1)
	add("empty")
	values := map[string]string{}
	for _, p := range look(t, &tap, func() { tap.Metrics(md) }).Points {
		values[p.Name] = p.Value
	}
	require.Equal(t, map[string]string{
		"sum": "0.5", "stale": "stale marker", "histogram": "count 3, sum 4, 2 buckets", "exponential": "count 2, sum 0, 0 buckets", "summary": "count 1, sum 0, 0 buckets",
	}, values)

	ld := plog.NewLogs()
	r := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	r.SetSeverityText("WARN")
	r.Body().SetStr(strings.Repeat("honk", 1000))
	logs := look(t, &tap, func() { tap.Logs(ld) })
	require.Equal(t, "logs", logs.Signal)
	require.Equal(t, "WARN", logs.Points[0].Name)
	require.Len(t, logs.Points[0].Value, shownText+len("…"))

	td := ptrace.NewTraces()
	s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetName("fly")
	s.SetEndTimestamp(pcommon.Timestamp(2_000_000))
	traces := look(t, &tap, func() { tap.Traces(td) })
	require.Equal(t, "traces", traces.Signal)
	require.Equal(t, []string{"fly", "2ms"}, []string{traces.Points[0].Name, traces.Points[0].Value})
}
