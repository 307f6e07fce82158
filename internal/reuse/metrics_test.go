// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package reuse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/internal/slab"
)

func needPlaces(t *testing.T) {
	if !slab.Places() {
		t.Skip("metrics look otherwise in this build")
	}
}

// unpoisoned is for tests of shared attributes, which do not exist where memory is poisoned.
func unpoisoned(t *testing.T) {
	needPlaces(t)
	t.Cleanup(handback.Poison(false))
}

func listOf(pairs ...string) pcommon.Map {
	m := pcommon.NewMap()
	for i := 0; i < len(pairs); i += 2 {
		m.PutStr(pairs[i], pairs[i+1])
	}
	return m
}

// lists returns attributes that are used repeatedly.
func lists(n int) (all []Attributes) {
	for i := range n {
		pairs := []string{}
		for j := range i % 5 {
			pairs = append(pairs, fmt.Sprint("key", j), fmt.Sprint("value", i))
		}
		all = append(all, Seal(listOf(pairs...)))
	}
	return all
}

// fill makes the same metrics in reused memory and in new memory.
func fill(random *rand.Rand, m *Metrics, with *slab.Slabs, shared []Attributes) (want pmetric.Metrics) {
	want = pmetric.NewMetrics()
	for range random.IntN(4) {
		rm, wantRM := m.Resource(), want.ResourceMetrics().AppendEmpty()
		if random.IntN(2) == 0 {
			a := shared[random.IntN(len(shared))]
			m.Share(rm.Resource().Attributes(), a)
			a.list.CopyTo(wantRM.Resource().Attributes())
		} else {
			name := fmt.Sprint("service", random.IntN(9))
			rm.Resource().Attributes().PutStr("service.name", name)
			wantRM.Resource().Attributes().PutStr("service.name", name)
		}
		for range random.IntN(3) {
			sm, wantSM := m.Scope(rm.ScopeMetrics()), wantRM.ScopeMetrics().AppendEmpty()
			if random.IntN(3) == 0 {
				sm.Scope().SetName("scope")
				wantSM.Scope().SetName("scope")
				sm.SetSchemaUrl("schema")
				wantSM.SetSchemaUrl("schema")
			}
			for range random.IntN(6) {
				fillMetric(random, m, with, shared, sm.Metrics(), wantSM.Metrics().AppendEmpty())
			}
		}
	}
	return want
}

func fillMetric(random *rand.Rand, m *Metrics, with *slab.Slabs, shared []Attributes, to pmetric.MetricSlice, want pmetric.Metric) {
	var n Numbers
	var points pmetric.NumberDataPointSlice
	if random.IntN(2) == 0 {
		n, points = m.Gauge(to), want.SetEmptyGauge().DataPoints()
	} else {
		n, points = m.Sum(to), want.SetEmptySum().DataPoints()
		n.Metric.Sum().SetIsMonotonic(true)
		want.Sum().SetIsMonotonic(true)
	}
	if random.IntN(4) > 0 {
		n.Metric.SetName("name")
		want.SetName("name")
	}
	if random.IntN(4) == 0 {
		a := shared[random.IntN(len(shared))]
		m.Describe(n, a)
		a.list.CopyTo(want.Metadata())
	}
	for range random.IntN(8) {
		a, w := None, points.AppendEmpty()
		if random.IntN(3) > 0 {
			a = shared[random.IntN(len(shared))]
		}
		var p pmetric.NumberDataPoint
		if random.IntN(3) == 0 {
			v := random.Int64()
			p = m.Integer(n.Points, a, v, with)
			w.SetIntValue(v)
		} else {
			v := random.NormFloat64()
			p = m.Double(n.Points, a, v, with)
			w.SetDoubleValue(v)
		}
		a.list.CopyTo(w.Attributes())
		for _, x := range [...]pmetric.NumberDataPoint{p, w} {
			if a == None {
				x.Attributes().PutStr("own", "text")
			}
			x.SetTimestamp(5)
		}
		if random.IntN(5) == 0 {
			p.Exemplars().AppendEmpty().SetIntValue(3)
			w.Exemplars().AppendEmpty().SetIntValue(3)
		}
	}
}

func encoded(t testing.TB, md pmetric.Metrics) string {
	b, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	return string(b)
}

// ruin removes and adds parts, like a processor that releases metrics may.
func ruin(random *rand.Rand, md pmetric.Metrics) {
	seldom := func() bool { return random.IntN(4) == 0 }
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				var points pmetric.NumberDataPointSlice
				if m.Type() == pmetric.MetricTypeGauge {
					points = m.Gauge().DataPoints()
				} else {
					points = m.Sum().DataPoints()
				}
				points.RemoveIf(func(pmetric.NumberDataPoint) bool { return seldom() })
				if seldom() {
					points.AppendEmpty().SetIntValue(1)
				}
				if seldom() {
					m.SetEmptyHistogram().DataPoints().AppendEmpty()
				}
			}
			sm.Metrics().RemoveIf(func(pmetric.Metric) bool { return seldom() })
		}
	}
	md.ResourceMetrics().RemoveIf(func(pmetric.ResourceMetrics) bool { return seldom() })
	md.ResourceMetrics().AppendEmpty().Resource().Attributes().PutStr("added", "x")
}

// TestMetricsAreAsThoseMadeAnew, whatever was in the memory, and whatever happened to its parts.
func TestMetricsAreAsThoseMadeAnew(t *testing.T) {
	unpoisoned(t)
	m, shared := New(), lists(20)
	var with slab.Slabs
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		want := fill(random, m, &with, shared)
		require.Equal(t, encoded(t, want), encoded(t, m.Metrics()), "seed %d", seed)
		if seed%3 > 0 {
			ruin(random, m.Metrics())
		}
		require.True(t, m.TakeBack(), "seed %d", seed)
		require.False(t, m.Changed())
	}
	for i := range shared {
		require.True(t, shared[i].Intact())
	}
}

// TestManyShareAttributes: shared attributes are read concurrently, and never written.
func TestManyShareAttributes(t *testing.T) {
	unpoisoned(t)
	shared := lists(20)
	var all sync.WaitGroup
	for worker := range uint64(4) {
		all.Go(func() {
			m := New()
			var with slab.Slabs
			for round := range uint64(100) {
				random := rand.New(rand.NewPCG(worker, round))
				want := fill(random, m, &with, shared)
				if encoded(t, want) != encoded(t, m.Metrics()) {
					t.Errorf("worker %d, round %d: metrics are others", worker, round)
				}
				ruin(random, m.Metrics())
				if !m.TakeBack() {
					t.Errorf("worker %d, round %d: memory was not taken back", worker, round)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestWhatWasHandedBackIsPoisoned: a component that keeps metrics sees nothing that anyone sent, and shared attributes
// are not overwritten.
func TestWhatWasHandedBackIsPoisoned(t *testing.T) {
	needPlaces(t)
	t.Cleanup(handback.Poison(true))
	m := New()
	var with slab.Slabs
	fillOne := func(a Attributes) pmetric.NumberDataPoint {
		n := m.Gauge(m.Scope(m.Resource().ScopeMetrics()).Metrics())
		n.Metric.SetName("name")
		p := m.Double(n.Points, a, 3, &with)
		if a == None {
			p.Attributes().PutStr("key", "secret")
		}
		return p
	}
	kept := fillOne(None)
	require.True(t, m.TakeBack())
	require.True(t, handback.IsPoison(kept.DoubleValue()))
	v, _ := kept.Attributes().Get("key")
	require.Equal(t, handback.PoisonText, v.Str())

	fillOne(None)
	require.InDelta(t, 3, m.Metrics().ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).DoubleValue(), 0)
	require.True(t, m.TakeBack())

	a := Seal(listOf("key", "shared"))
	kept = fillOne(a)
	require.False(t, m.TakeBack(), "others have these attributes")
	require.True(t, a.Intact())
	require.InDelta(t, 3, kept.DoubleValue(), 0)
	require.False(t, m.Changed())
}

// TestMetricsOfSeveralAreNotTakenBack: behind a fan-out it is unknown when all consumers have released them.
func TestMetricsOfSeveralAreNotTakenBack(t *testing.T) {
	needPlaces(t)
	m := New()
	m.Resource()
	m.Metrics().MarkReadOnly()
	require.False(t, m.TakeBack())
	require.False(t, m.Changed())
}

// TestChangedAttributesAreFound: immediately if their number changed, and after as many requests as there are turns at
// the latest if one was replaced.
func TestChangedAttributesAreFound(t *testing.T) {
	racetest.Sequential(t)
	unpoisoned(t)
	const points = 3 * lookEvery
	for name, c := range map[string]struct {
		change  func(pcommon.Map)
		changed bool
	}{
		"nothing":  {func(pcommon.Map) {}, false},
		"added":    {func(m pcommon.Map) { m.PutStr("more", "x") }, false},
		"removed":  {func(m pcommon.Map) { m.Remove("b") }, true},
		"replaced": {func(m pcommon.Map) { m.PutStr("b", "other") }, true},
		"retyped":  {func(m pcommon.Map) { m.PutInt("b", 2) }, true},
		"renamed": {func(m pcommon.Map) {
			m.Remove("b")
			m.PutStr("c", "2")
		}, true},
	} {
		for at := range points {
			m := New()
			var with slab.Slabs
			turns, taken := 0, true
			for ; taken && turns < lookEvery; turns++ {
				to := m.Gauge(m.Scope(m.Resource().ScopeMetrics()).Metrics()).Points
				for i := range points {
					p := m.Double(to, Seal(listOf("a", "1", "b", "2")), 1, &with)
					if i == at {
						c.change(p.Attributes())
					}
				}
				taken = m.TakeBack()
			}
			require.Equal(t, name == "nothing", taken, name)
			require.Equal(t, c.changed, m.Changed(), name)
			if name == "added" || name == "removed" {
				require.Equal(t, 1, turns, name)
			}
		}
	}
}

// The attributes of resources, which are few, are checked each time.
func TestChangedAttributesOfResourcesAreFoundAtOnce(t *testing.T) {
	unpoisoned(t)
	a := Seal(listOf("service.name", "one"))
	m := New()
	m.Share(m.Resource().Resource().Attributes(), a)
	require.True(t, m.TakeBack())
	rm := m.Resource()
	m.Share(rm.Resource().Attributes(), a)
	rm.Resource().Attributes().PutStr("service.name", "two")
	require.False(t, m.TakeBack())
	require.True(t, m.Changed())
	require.False(t, a.Intact())
}

// TestHugeMemoryIsLetGo: memory that one large request needed is not kept for small ones.
func TestHugeMemoryIsLetGo(t *testing.T) {
	unpoisoned(t)
	m := New()
	var with slab.Slabs
	need := func(n int) bool {
		to := m.Gauge(m.Scope(m.Resource().ScopeMetrics()).Metrics()).Points
		for range n {
			m.Double(to, None, math.Pi, &with)
		}
		return m.TakeBack()
	}
	require.True(t, need(8*spare/pointWeight))
	requests := 0
	for ; need(10); requests++ {
		require.Less(t, requests, 1000)
	}
	require.Greater(t, requests, 3, "a small request in between does not count as lately")

	m = New()
	m.Weighs(8 * spare)
	require.True(t, need(10), "what was made anew beside it counts as well")
	for requests = 0; need(10); requests++ {
		require.Less(t, requests, 1000)
	}
}

// TestFillingAgainAllocatesNothing, not even for points with shared attributes.
func TestFillingAgainAllocatesNothing(t *testing.T) {
	unpoisoned(t)
	m, shared := New(), lists(10)
	var with slab.Slabs
	work := func() {
		rm := m.Resource()
		m.Share(rm.Resource().Attributes(), shared[3])
		to := m.Sum(m.Scope(rm.ScopeMetrics()).Metrics()).Points
		for i := range 100 {
			m.Double(to, shared[i%10], 1, &with)
		}
		require.True(t, m.TakeBack())
	}
	work()
	require.Less(t, testing.AllocsPerRun(100, work), 2.)
}
