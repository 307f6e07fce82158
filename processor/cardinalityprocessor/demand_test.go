// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	rand "math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/fair"
)

func TestDemandEstimates(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 8))
	for _, n := range []int{0, 1, 10, 100, 1000, 5000, 10_000, 20_000, 100_000, 1_000_000} {
		var d fair.Demand
		for range n {
			fp := random.Uint64()
			d.Add(fp)
			d.Add(fp)
		}
		require.InEpsilon(t, float64(n)+0.5, d.Estimate()+0.5, 0.05, "%d", n)
	}
}

func TestDemandForgets(t *testing.T) {
	var d fair.Demand
	require.Zero(t, d.Estimate())
	random := rand.New(rand.NewPCG(1, 9))
	for range 1000 {
		d.Add(random.Uint64())
	}
	d.Turn()
	for range 1000 {
		d.Add(random.Uint64())
	}
	require.InEpsilon(t, 2000, d.Estimate(), 0.05)
	d.Turn()
	require.InEpsilon(t, 1000, d.Estimate(), 0.05)
	d.Turn()
	require.Zero(t, d.Estimate())
}

func TestRejectedSeriesAreEstimated(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Rules = []RuleConfig{{Name: "r", MaxSeries: 1}} })
	for range 3 {
		for i := range 101 {
			r.send(aSeries(i))
		}
	}
	require.InDelta(t, 100, r.gauge("rejected_series", "r"), 3)
	require.Zero(t, r.gauge("rejected_series", "total"))
	cfg := *r.cfg
	cfg.Rules = []RuleConfig{{Name: "r", MaxSeries: 2}}
	r.Apply(&cfg)
	require.InDelta(t, 100, r.gauge("rejected_series", "r"), 3, "changed rules do not forget")
	r.send(aSeries(0))
	r.idle()
	r.send(aSeries(0))
	r.idle()
	require.Zero(t, r.gauge("rejected_series", "r"))
}

// Most rules reject nothing, and have no memory for counting it. A rule that begins to reject while a period ends loses
// no counts.
func TestDemandOfRulesThatRejectNothing(t *testing.T) {
	var d fair.Demand
	d.Turn()
	require.Nil(t, d.Now.Load())
	require.Zero(t, d.Estimate())
	var adding sync.WaitGroup
	for i := range uint64(4) {
		adding.Go(func() {
			for k := range uint64(1000) {
				d.Add(i<<32 | k)
			}
		})
	}
	for range 100 {
		d.Turn()
	}
	adding.Wait()
	for k := range uint64(10) {
		d.Add(k)
	}
	require.GreaterOrEqual(t, d.Estimate(), 9.5)
	d.Turn()
	d.Turn()
	require.Zero(t, d.Estimate())
	require.Nil(t, d.Before.Load())
}
