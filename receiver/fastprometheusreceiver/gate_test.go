// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/multierr"
)

var (
	errLimited = errors.New(memoryLimited)
	errFull    = errors.New("sending queue is full")
)

// close makes a gate hold back targets, and returns them.
func (g *gate) close(targets int) []refusal {
	all := make([]refusal, targets)
	for i := range all {
		g.refuse(&all[i], errFull)
	}
	return all
}

// The targets that are held back are tried about once each interval in total, and in turn.
func TestGateLetsEachTargetProbe(t *testing.T) {
	for _, targets := range []int{evidence, 100, 300} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(paths{1, 1})
			all := g.close(targets)
			const interval = 10 * time.Second
			probes := make([]int, targets)
			rounds := 4 * targets
			for range rounds {
				// They come shortly after each other, and always in the same order.
				for i := range all {
					if g.admits(&all[i]) {
						probes[i]++
						g.refuse(&all[i], errFull)
					}
				}
				time.Sleep(interval)
			}
			total := 0
			for i, n := range probes {
				assert.Positive(t, n, "target %d of %d", i, targets)
				total += n
			}
			seconds := rounds * int(interval/time.Second)
			assert.LessOrEqual(t, total, 2*seconds+2*targets, targets)
			assert.GreaterOrEqual(t, total, min(seconds/2, targets*rounds/2), targets)
		})
	}
}

// Targets that were removed do not reduce the number of tries of those that are still held back.
func TestGateForgetsThoseThatHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(paths{1, 1})
		all := g.close(100 * evidence)
		stay := all[:evidence/2]
		for i := range all[len(stay):] {
			g.leave(&all[len(stay):][i])
		}
		g.leave(&refusal{}) // one that was never refused
		probes := 0
		for range 100 {
			time.Sleep(time.Second)
			for i := range stay {
				if g.admits(&stay[i]) {
					probes++
					_, refusing, holding := g.refuse(&stay[i], errFull)
					assert.True(t, refusing && holding)
				}
			}
		}
		assert.Greater(t, probes, 50)
		assert.Less(t, probes, 200)
		assert.True(t, g.take(), "the log has it that the pipeline refuses")
	})
}

// The first success opens the gate for all, and it starts to count refusals anew.
func TestGateOpensForAll(t *testing.T) {
	g := newGate(paths{1, 1})
	all := g.close(1000)
	held := 0
	for i := range all {
		if !g.admits(&all[i]) {
			held++
		}
	}
	assert.Greater(t, held, 800)
	assert.True(t, g.take())
	assert.False(t, g.take(), "it is open")
	for i := range all {
		assert.True(t, g.admits(&all[i]))
	}
	var begins, refusing bool
	for i := range evidence {
		assert.False(t, begins || refusing, i)
		begins, refusing, _ = g.refuse(&all[i], errFull)
	}
	assert.True(t, begins && refusing)
}

// Repeated refusals do not close the gate if other targets succeed in between, or if the targets are few. Targets that
// were not refused are never held back.
func TestGateTellsTargetsFromThePipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(paths{1, 1})
		few := make([]refusal, evidence-1)
		for range 100 {
			for i := range few {
				assert.True(t, g.admits(&few[i]))
				g.refuse(&few[i], errFull)
			}
		}
		assert.True(t, !g.take() && g.admits(&few[0]))

		all := g.close(1000)
		assert.True(t, g.admits(new(refusal)), "another target")
		assert.True(t, g.take())
		g.close(1000)
		assert.True(t, g.admits(&all[0]), "refused before others were taken")
	})
}

// An error closes the gate only if it says that nobody accepted the metrics.
func TestRefusalsByAll(t *testing.T) {
	two := multierr.Append(errLimited, errFull)
	wrapped := consumererror.NewDownstream(fmt.Errorf("processor: %w", errLimited))
	for name, test := range map[string]struct {
		behind paths
		err    error
		want   bool
	}{
		"nobody knows":                             {paths{}, errLimited, false},
		"nobody knows, several":                    {paths{}, multierr.Append(errLimited, errLimited), false},
		"one way":                                  {paths{1, 1}, errFull, true},
		"one way, permanent":                       {paths{1, 1}, consumererror.NewPermanent(errFull), false},
		"two exporters, one is full":               {paths{1, 2}, errFull, false},
		"two exporters, an error each":             {paths{1, 2}, multierr.Append(errFull, errFull), false},
		"two exporters behind a memory limiter":    {paths{1, 2}, errLimited, true},
		"the same, wrapped":                        {paths{1, 2}, wrapped, true},
		"two pipelines, one limiter":               {paths{2, 2}, errLimited, false},
		"two pipelines, a limiter and a queue":     {paths{2, 2}, two, false},
		"two pipelines, two limiters":              {paths{2, 2}, multierr.Append(errLimited, errLimited), true},
		"two pipelines, two limiters, wrapped":     {paths{2, 3}, errors.Join(wrapped, errLimited), true},
		"two pipelines, a limiter and a permanent": {paths{2, 2}, multierr.Append(errLimited, consumererror.NewPermanent(errFull)), false},
		"words of a gateway":                       {paths{1, 2}, errors.New("rpc error: " + memoryLimited), false},
	} {
		assert.Equal(t, test.want, test.behind.refuse(test.err), name)
	}
}

// A refusal that other targets may not get opens the gate for all.
func TestGateStaysOpenForPipelinesThatAreWell(t *testing.T) {
	g := newGate(paths{2, 2})
	all := make([]refusal, 1000)
	for i := range all {
		g.refuse(&all[i], multierr.Append(errLimited, errLimited))
	}
	held := func() (n int) {
		for i := range all {
			if !g.admits(&all[i]) {
				n++
			}
		}
		return n
	}
	assert.Greater(t, held(), 800)
	_, refusing, holding := g.refuse(&all[0], errLimited)
	assert.True(t, refusing)
	assert.False(t, holding)
	assert.Zero(t, held())
}
