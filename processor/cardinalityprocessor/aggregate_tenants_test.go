// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/aggregate"
)

func aggregatingTenants(c *Config) {
	c.Tenant.From = []string{"resource:org"}
	c.Memory.AggregateStateMiB = 1
	withStorage(aggregating(AggregateConfig{Without: []string{"pod"}}))(c)
}

func tenantsPod(org string, i int) point {
	return point{resource: attrs{"org": org}, name: "hits", kind: cumulative, attrs: attrs{"pod": strconv.Itoa(i)}}
}

// flood sends series of a tenant until one passes unchanged, and returns how many were aggregated.
func (r *rig) flood(org string, begin time.Time) (taken int) {
	for r.consume(r.timed(tenantsPod(org, taken), begin, r.at(1), 1)).DataPointCount() == 0 {
		taken++
		require.Less(r.t, taken, 100_000)
	}
	return taken
}

// One tenant gets at most seven eighths of the memory, however many series it sends. The next one gets the same share
// of the rest.
func TestATenantLeavesMemoryForAggregatesOfOthers(t *testing.T) {
	racetest.Sequential(t)
	r := newRig(t, aggregatingTenants)
	host := newMemory()
	require.NoError(t, r.begin(host))
	budget := int64(1) << 20
	loud := r.flood("loud", r.clock)
	require.InDelta(t, budget/8*7, r.Aggregator.Fullest(), 2000)
	require.Equal(t, r.Aggregator.Used.Load(), r.Aggregator.Fullest())

	second := r.flood("second", r.clock)
	require.InDelta(t, loud/8, second, 60)
	require.Zero(t, r.consume(r.timed(tenantsPod("quiet", 1), r.clock, r.at(1), 5)).DataPointCount())
	require.Zero(t, r.consume(r.timed(tenantsPod("loud", 0), r.clock, r.at(2), 4)).DataPointCount(), "who is known stays")
	require.Equal(t, int64(2), r.gauge("unaggregated_points", ""))
	require.Equal(t, r.Aggregator.Fullest(), r.gauge("aggregate_state_fullest", ""))
	require.Equal(t, []string{
		"hits{org:loud} " + strconv.Itoa(loud+3), "hits{org:quiet} 5", "hits{org:second} " + strconv.Itoa(second),
	}, told(r.poured(10*time.Second)))

	most, used := r.Aggregator.Fullest(), r.Aggregator.Used.Load()
	require.NoError(t, r.shutdown(t.Context()))
	again := newRig(t, aggregatingTenants)
	require.NoError(t, again.begin(host.killed()))
	require.Equal(t, []int64{most, used}, []int64{again.Aggregator.Fullest(), again.Aggregator.Used.Load()}, "what was saved is accounted")
	again.clock = r.clock
	require.Equal(t, 1, again.consume(again.timed(tenantsPod("loud", loud+1), r.clock, again.at(1), 1)).DataPointCount())
	require.Zero(t, again.consume(again.timed(tenantsPod("quiet", 2), r.clock, again.at(1), 1)).DataPointCount())
}

// When a tenant runs out of memory, its own silent series are forgotten early, and those of others are not.
func TestATenantThatIsShortOfMemoryForgetsItsOwn(t *testing.T) {
	racetest.Sequential(t)
	r := newRig(t, aggregatingTenants)
	begin := r.clock
	require.Zero(t, r.consume(r.timed(tenantsPod("quiet", 1), begin, r.at(1), 5)).DataPointCount())
	r.flood("loud", begin)
	full := r.Aggregator.Fullest()
	r.epochs(aggregate.RestsAfter + 1)
	r.poured(time.Second)
	r.poured(10 * time.Second)
	require.Less(t, r.Aggregator.Fullest(), full/100)
	require.Zero(t, r.consume(r.timed(tenantsPod("quiet", 1), begin, r.at(1), 7)).DataPointCount())
	require.Contains(t, told(r.poured(10*time.Second)), "hits{org:quiet} 7", "it goes on where it was")
	r.epochs(aggregate.ForgetsAfter + 1)
	for range 3 {
		r.poured(time.Second)
	}
	require.Zero(t, r.Aggregator.Fullest())
	require.Zero(t, r.Aggregator.Used.Load())
}
