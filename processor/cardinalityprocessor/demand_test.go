// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDemandEstimates(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 8))
	for _, n := range []int{0, 1, 10, 100, 1000, 5000, 10_000, 20_000, 100_000, 1_000_000} {
		var d demand
		for range n {
			fp := random.Uint64()
			d.add(fp)
			d.add(fp)
		}
		require.InEpsilon(t, float64(n)+0.5, d.estimate()+0.5, 0.05, "%d", n)
	}
}

func TestDemandForgets(t *testing.T) {
	var d demand
	require.Zero(t, d.estimate())
	random := rand.New(rand.NewPCG(1, 9))
	for range 1000 {
		d.add(random.Uint64())
	}
	d.turn()
	for range 1000 {
		d.add(random.Uint64())
	}
	require.InEpsilon(t, 2000, d.estimate(), 0.05)
	d.turn()
	require.InEpsilon(t, 1000, d.estimate(), 0.05)
	d.turn()
	require.Zero(t, d.estimate())
}

func TestRejectedSeriesAreEstimated(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Rules = []RuleConfig{{Name: "r", MaxSeries: 1}} })
	for range 3 {
		for i := range 101 {
			r.send(series(i))
		}
	}
	require.InDelta(t, 100, r.gauge("rejected_series", "r"), 3)
	require.Zero(t, r.gauge("rejected_series", "total"))
	cfg := *r.cfg
	cfg.Rules = []RuleConfig{{Name: "r", MaxSeries: 2}}
	r.apply(&cfg)
	require.InDelta(t, 100, r.gauge("rejected_series", "r"), 3, "changed rules do not forget")
	r.send(series(0))
	r.idle()
	r.send(series(0))
	r.idle()
	require.Zero(t, r.gauge("rejected_series", "r"))
}

// Most rules reject nothing, and have nothing to count it in. One that begins to while a time ends loses none.
func TestDemandOfRulesThatRejectNothing(t *testing.T) {
	var d demand
	d.turn()
	require.Nil(t, d.now.Load())
	require.Zero(t, d.estimate())
	var adding sync.WaitGroup
	for i := range uint64(4) {
		adding.Go(func() {
			for k := range uint64(1000) {
				d.add(i<<32 | k)
			}
		})
	}
	for range 100 {
		d.turn()
	}
	adding.Wait()
	for k := range uint64(10) {
		d.add(k)
	}
	require.GreaterOrEqual(t, d.estimate(), 9.5)
	d.turn()
	d.turn()
	require.Zero(t, d.estimate())
	require.Nil(t, d.before.Load())
}
