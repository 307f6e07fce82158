// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
)

// layouts are some that have the same metrics, and a hundred points each.
func layouts(n int) (all []*plan.Layout) {
	for range n {
		all = append(all, &plan.Layout{Points: make([]*catalog.Point, 100)})
	}
	return all
}

// pooled are the pools of some layouts, when so many points wait elsewhere.
func pooled(t *testing.T, all []*plan.Layout, elsewhere int64) *Pools {
	before := retained.Swap(elsewhere)
	t.Cleanup(func() { retained.Store(before) })
	pools := &Pools{}
	for _, l := range all {
		pools.Join(l)
	}
	return pools
}

// Pages of the same metrics about other things, such as those of one program at several sites, share a pool. While they are of few plans,
// each has a tree of its own there, however many points wait: or each scrape would give one the points of another.
func TestFewPlansKeepATreeEach(t *testing.T) {
	all := layouts(FewPlans)
	pools := pooled(t, all, retainedPoints)
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
	retained.Add(retainedPoints)
	require.NotNil(t, pools.Take(all[1]), "there is no room")
	require.Nil(t, pools.Take(all[1]))
}

func TestPoolsAreBounded(t *testing.T) {
	all := layouts(1)
	pools := pooled(t, all, 2*retainedPoints)
	pools.Give(&Tree{Layout: all[0]})
	pools.Give(&Tree{Layout: all[0]})
	_, waiting := pools.Waiting()
	require.Equal(t, 1, waiting)
	require.Equal(t, int64(2*retainedPoints+100), retained.Load())

	retained.Store(0)
	for range 2 * runtime.GOMAXPROCS(0) {
		pools.Give(&Tree{Layout: all[0]})
	}
	_, waiting = pools.Waiting()
	require.Equal(t, runtime.GOMAXPROCS(0), waiting)

	many := layouts(FewPlans + 1)
	pools = pooled(t, many, retainedPoints)
	for _, l := range many {
		pools.Give(&Tree{Layout: l})
	}
	_, waiting = pools.Waiting()
	require.Equal(t, 1, waiting, "which all share")
	require.NotNil(t, pools.Take(many[0]))
}
