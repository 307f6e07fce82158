// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/slab"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// layouts returns n layouts with the same metrics and a hundred points each.
func layouts(n int) (all []*plan.Layout) {
	for range n {
		all = append(all, &plan.Layout{Points: make([]*catalog.Point, 100)})
	}
	return all
}

// pooled returns the pools of some layouts, with the given number of points waiting elsewhere.
func pooled(t *testing.T, all []*plan.Layout, elsewhere int64) *Pools {
	before, idlingBefore := retained.Swap(elsewhere), idling.Swap(elsewhere)
	t.Cleanup(func() {
		retained.Store(before)
		idling.Store(idlingBefore)
	})
	pools := &Pools{}
	for _, l := range all {
		pools.Join(l)
	}
	return pools
}

// Pages with the same metrics but different resources, such as those of one program at several sites, share a pool. As
// long as they have few plans, each has a tree of its own there, however many points wait: otherwise each scrape would
// give one page the points of another.
func TestFewPlansKeepATreeEach(t *testing.T) {
	all := layouts(FewPlans)
	pools := pooled(t, all, 2*fewRetained)
	for range 2 {
		for _, l := range all {
			pools.Give(&Tree{Layout: l})
		}
	}
	_, waiting := pools.Waiting()
	require.Equal(t, FewPlans, waiting, "and no second one")
	for range 2 {
		for _, l := range all {
			tr := pools.Take(l)
			require.Same(t, l, tr.Layout)
			pools.Give(tr)
		}
	}
}

func TestTreesOfOthersAreLeftToThem(t *testing.T) {
	all := layouts(2)
	pools := pooled(t, all, 0)
	pools.Give(&Tree{Layout: all[0]})
	require.Nil(t, pools.Take(all[1]), "there is room for one each")
	pools.Give(&Tree{Layout: all[0]})
	require.NotNil(t, pools.Take(all[1]), "the other has two")
	retained.Store(mostRetained - 99)
	require.NotNil(t, pools.Take(all[1]), "there is no room")
	require.Nil(t, pools.Take(all[1]))
}

// A plan whose tree is being filled does not take the trees of other plans, however many points wait: over time, each
// of them would get as many points as the largest page has.
func TestTreesOfOthersStaySmall(t *testing.T) {
	small, large := layouts(1)[0], &plan.Layout{Points: make([]*catalog.Point, 5000)}
	pools := pooled(t, []*plan.Layout{small, large}, mostRetained/2)
	pools.Give(&Tree{Layout: small})
	require.Nil(t, pools.Take(large))
	require.NotNil(t, pools.Take(small))
}

// Where many plans have the same metrics, each number of points that several of them have gets a tree: such a tree can
// keep the attributes that it has.
func TestFrequentSizesKeepATreeEach(t *testing.T) {
	family := &catalog.Family{}
	sized := func(points, plans int) (all []*plan.Layout) {
		for range plans {
			all = append(all, &plan.Layout{
				Metrics: []plan.PlacedMetric{{Family: family, Points: int32(points)}}, Points: make([]*catalog.Point, points),
			})
		}
		return all
	}
	small, large, rare := sized(100, manyAlike), sized(200, FewPlans), sized(300, manyAlike-1)
	pools := pooled(t, slices.Concat(small, large, rare), 0)
	take := func(l *plan.Layout) int {
		if tr := pools.Take(l); tr != nil {
			return len(tr.Layout.Points)
		}
		return 0
	}
	pools.Give(&Tree{Layout: large[0]})
	require.Zero(t, take(small[0]), "there is room for one each")
	pools.Give(&Tree{Layout: small[0]})
	pools.Give(&Tree{Layout: large[0]})
	require.Equal(t, 100, take(small[1]))
	require.Equal(t, 200, take(large[1]))
	require.Equal(t, 200, take(large[2]))
	require.Zero(t, take(large[3]))

	pools.Give(&Tree{Layout: small[0]})
	pools.Give(&Tree{Layout: large[0]})
	require.Equal(t, 200, take(rare[0]), "which is seldom")
	require.Equal(t, 100, take(rare[1]))
	pools.Leave(small[3])
	pools.Give(&Tree{Layout: large[0]})
	require.Equal(t, 200, take(small[0]), "as it is now")
}

func TestTreesOfPlansThatEndedGo(t *testing.T) {
	all := layouts(3)
	pools := pooled(t, all, 0)
	for _, l := range all {
		pools.Give(&Tree{Layout: l})
	}
	pools.Leave(all[0])
	_, waiting := pools.Waiting()
	require.Equal(t, 2, waiting)
	require.Equal(t, int64(200), retained.Load())
	require.Same(t, all[1], pools.Take(all[1]).Layout)
	pools.Leave(all[2])
	_, waiting = pools.Waiting()
	require.Equal(t, 1, waiting, "which the plan that is left can fill")
	require.NotNil(t, pools.Take(all[1]))
}

func TestPoolsAreBounded(t *testing.T) {
	all := layouts(1)
	pools := pooled(t, all, mostRetained)
	pools.Give(&Tree{Layout: all[0]})
	pools.Give(&Tree{Layout: all[0]})
	_, waiting := pools.Waiting()
	require.Equal(t, 1, waiting)
	require.Equal(t, int64(mostRetained+100), retained.Load())

	retained.Store(0)
	for range 2 * runtime.GOMAXPROCS(0) {
		pools.Give(&Tree{Layout: all[0]})
	}
	_, waiting = pools.Waiting()
	require.Equal(t, runtime.GOMAXPROCS(0), waiting)

	many := layouts(FewPlans + 1)
	pools = pooled(t, many, 2*fewRetained)
	for _, l := range many {
		pools.Give(&Tree{Layout: l})
	}
	_, waiting = pools.Waiting()
	require.Equal(t, 1, waiting, "which all share")
	require.NotNil(t, pools.Take(many[0]))
}

// Points that no page needs at the moment count like those that are needed.
func TestStowedPointsAreCounted(t *testing.T) {
	all := layouts(1)
	pools := pooled(t, all, 0)
	pools.Give(&Tree{Layout: all[0], stowed: 50})
	require.Equal(t, int64(150), retained.Load())
	require.NotNil(t, pools.Take(all[0]))
	require.Zero(t, retained.Load())
	retained.Store(mostRetained - 120)
	pools.Give(&Tree{Layout: all[0], stowed: 50})
	pools.Give(&Tree{Layout: all[0], stowed: 50})
	_, waiting := pools.Waiting()
	require.Equal(t, 1, waiting)
}

// A tree that is taken for other points has enough room for them, and little more.
func TestTreesSuitPages(t *testing.T) {
	sizes := []int{10, 300, 100, 1000}
	var all []*plan.Layout
	for _, n := range append(sizes, 50, 100, 200, 5000) {
		all = append(all, &plan.Layout{Points: make([]*catalog.Point, n)})
	}
	for wanted, want := range map[int]int{4: 100, 5: 100, 6: 300, 7: 1000} {
		pools := pooled(t, all, fewRetained)
		for i := range sizes {
			pools.Give(&Tree{Layout: all[i]})
		}
		retained.Store(mostRetained)
		require.Len(t, pools.Take(all[wanted]).Layout.Points, want)
	}
}

// A stowed point contains nothing that belongs to a target, and comes back like a point that is about to become
// another.
func TestStowedPointsForgetTheirTarget(t *testing.T) {
	stowed := 0
	c := &cursor{View: &View{}, stowed: &stowed}
	dps := pmetric.NewNumberDataPointSlice()
	for i := range 4 {
		dp := dps.AppendEmpty()
		dp.SetDoubleValue(float64(i))
		dp.Attributes().PutStr("pod", "of a target")
		dp.Exemplars().AppendEmpty().FilteredAttributes().PutStr("user", "one")
	}
	k := prepare(c, dps, choice{count: 2, kept: 2, drop: []bool{true, false, true, false}}, forgetNumber)
	require.Equal(t, 2, dps.Len())
	require.InDelta(t, 1, dps.At(0).DoubleValue(), 0)
	require.InDelta(t, 3, dps.At(1).DoubleValue(), 0)
	require.False(t, k.renews(1))
	if !slab.Places() {
		require.Zero(t, stowed)
		return
	}
	require.Equal(t, 2, stowed)
	k = prepare(c, dps, choice{count: 5, kept: 2}, forgetNumber)
	require.Zero(t, stowed)
	require.Equal(t, 4, k.kept)
	require.Equal(t, 4, dps.Len())
	for i := range 4 {
		require.Equal(t, i >= 2, k.renews(i))
		v, ok := dps.At(i).Attributes().Get("pod")
		require.True(t, ok)
		if i < 2 {
			require.Equal(t, "of a target", v.Str())
			continue
		}
		require.Empty(t, v.Str())
		require.Zero(t, dps.At(i).Exemplars().At(0).FilteredAttributes().Len())
	}
	require.True(t, c.mayHaveExemplars(k), "for the exemplars that are there")
}

// A tree is worth its memory only if it is filled again soon. Some trees wait nevertheless, as long as all of them
// together are small.
func TestTreesThatAreSeldomFilledAreNotKept(t *testing.T) {
	all := layouts(1)
	pools := pooled(t, all, 0)
	j := &Job{Idle: IdlePoints}
	at := pcommon.Timestamp(1e18)
	fill := func(n int, every time.Duration) (kept int) {
		for range n {
			at += pcommon.Timestamp(every)
			tr := pools.Take(all[0])
			keeps := pools.Keeps(all[0], at, j)
			if tr == nil {
				tr = &Tree{Layout: all[0]}
			}
			pools.Give(tr)
			_, waiting := pools.Waiting()
			require.Equal(t, keeps, waiting > 0)
			kept += waiting
		}
		return kept
	}
	require.Equal(t, 10, fill(10, time.Minute), "there is room for it")
	retained.Add(IdlePoints)
	require.Zero(t, fill(100, window/30), "it is seldom filled")
	require.Positive(t, fill(50, 10*time.Millisecond), "it is filled often")
	require.Equal(t, 1000, fill(1000, 10*time.Millisecond))
	require.LessOrEqual(t, fill(100, time.Minute), 2, "it was")
	j.Idle = -1
	require.Zero(t, fill(1000, 10*time.Millisecond), "none is to be kept")
}

// If there is no room for all trees that are seldom filled, none of them is kept.
func TestNoneOfManyIdleTreesIsKept(t *testing.T) {
	all := layouts(1)
	large := &plan.Layout{Metrics: make([]plan.PlacedMetric, 1), Points: make([]*catalog.Point, IdlePoints)}
	large.Metrics[0].Family = &catalog.Family{}
	pools := pooled(t, append(all, large), 0)
	j := &Job{Idle: IdlePoints}
	at := pcommon.Timestamp(1e18)
	fill := func(l *plan.Layout) (keeps bool) {
		at += pcommon.Timestamp(30 * time.Second)
		tr := pools.Take(l)
		if keeps = pools.Keeps(l, at, j); tr == nil {
			tr = &Tree{Layout: l}
		}
		pools.Give(tr)
		return keeps
	}
	for range 3 {
		require.True(t, fill(all[0]))
	}
	require.False(t, fill(large))
	require.False(t, fill(all[0]), "though there is room for this one")
	_, waiting := pools.Waiting()
	require.Zero(t, waiting)
	for range 100 {
		require.False(t, fill(large), "though nothing waits any more")
		require.False(t, fill(all[0]))
	}
	pools.Leave(large)
	require.True(t, fill(all[0]), "the other one comes no more")
	pools.Leave(all[0])
	require.Zero(t, idling.Load())
}

// What counts is how many points are filled for those that wait: one large page and many small ones do not make a tree
// of the large one worth its memory, nor do eight fills a second for each of eight trees.
func TestEachPointOfAPoolIsToBeWorthIt(t *testing.T) {
	kept := func(all []*plan.Layout, fills int, every time.Duration) (kept int) {
		pools := pooled(t, all, IdlePoints)
		at := pcommon.Timestamp(1e18)
		for i := range fills {
			l := all[i%len(all)]
			at += pcommon.Timestamp(every)
			tr := pools.Take(l)
			pools.Keeps(l, at, &Job{Idle: IdlePoints})
			if tr == nil {
				tr = &Tree{Layout: l}
			}
			pools.Give(tr)
		}
		_, kept = pools.Waiting()
		return kept
	}
	require.LessOrEqual(t, kept(layouts(FewPlans), 400, 100*time.Millisecond), 5, "ten fills a second")
	require.Equal(t, FewPlans, kept(layouts(FewPlans), 400, 10*time.Millisecond))
	sizes := append(layouts(2*FewPlans), &plan.Layout{Points: make([]*catalog.Point, 10_000)})
	require.LessOrEqual(t, kept(sizes, 500, 100*time.Millisecond), 2)
	unlike := append(layouts(1), &plan.Layout{Points: make([]*catalog.Point, 10_000)})
	require.Zero(t, kept(unlike, 200, 500*time.Millisecond), "nor does one page that is large make a tree of the small one worth it")
	require.Equal(t, 2, kept(unlike, 2000, 50*time.Millisecond))
}

// A tree that would not be kept with the points of a larger page is not taken for that page.
func TestTreesDoNotGrowInVain(t *testing.T) {
	large := &plan.Layout{Points: make([]*catalog.Point, 2*IdlePoints)}
	all := append(layouts(FewPlans+1), large)
	pools := pooled(t, all, 0)
	at := pcommon.Timestamp(1e18)
	require.True(t, pools.Keeps(all[0], at, &Job{Idle: IdlePoints}))
	pools.Give(&Tree{Layout: all[0]})
	require.Nil(t, pools.Take(large))
	require.False(t, pools.Keeps(large, at, &Job{Idle: IdlePoints}))
	require.NotNil(t, pools.Take(all[1]), "it has as many points")
}
