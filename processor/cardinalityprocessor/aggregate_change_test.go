// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"errors"
	"fmt"
	rand "math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
)

// TestAggregatesAreExactWhateverTheRuleWas: a rule may change while the process runs, while it is down, or before it is
// killed: all its versions together have the total of the counters. While there is no rule, inputs pass by themselves,
// with their whole value.
func TestAggregatesAreExactWhateverTheRuleWas(t *testing.T) {
	racetest.Sequential(t)
	seen := map[string]int{}
	for seed := range seeds(t, 24) {
		changeLife(t, seed, seen)
	}
	for _, what := range []string{"reload", "restart", "kill", "reset", "busy", "gone", "back"} {
		require.Positive(t, seen[what], what)
	}
}

// changing is a series of events in the life of a rule that changes.
type changing struct {
	*piped

	seed   uint64
	random *rand.Rand
	seen   map[string]int
	host   *memory
	rule   AggregateConfig
	gone   bool // there is no rule
	kills  bool // otherwise inputs restart: after a kill, their growth since the last flush is missing
	inputs []*changingInput
	want   int64 // of inputs that restarted
	got    int64
	last   map[string]int64
}

type changingInput struct {
	point

	start           time.Time
	value, accepted int64
}

func changeLife(t *testing.T, seed uint64, seen map[string]int) {
	c := &changing{seed: seed, random: rand.New(rand.NewPCG(seed, 43)), seen: seen, host: newMemory(), kills: seed%2 == 0, last: map[string]int64{}}
	c.rule = c.version()
	c.piped = newPiped(t, c.config())
	require.NoError(t, c.begin(c.host))
	for range 150 {
		c.step()
	}
	c.clock = c.clock.Add(time.Second)
	for _, in := range c.inputs {
		for accepted := false; !accepted; { // after a kill it has to be sent again
			accepted = c.say(in)
		}
		c.want += in.accepted
	}
	c.restart()
	require.Equal(t, c.want, c.got, "seed %d", seed)
}

func (c *changing) version() AggregateConfig {
	if c.kills {
		return versions[c.random.IntN(len(versions))]
	}
	if c.gone = c.random.IntN(4) == 0; c.gone {
		c.seen["gone"]++
	}
	return versions[c.random.IntN(len(versions)-1)] // not the one whose series look like the inputs
}

func (c *changing) config() func(*Config) {
	rule := c.rule
	return withStorage(func(cfg *Config) {
		cfg.Exempt = []MatchConfig{{Metric: "exempt"}}
		if cfg.Rules = nil; !c.gone {
			cfg.Rules = []RuleConfig{{Name: "a", Aggregate: &rule}}
		}
	})
}

func (c *changing) step() {
	c.clock = c.clock.Add(time.Duration(1+c.random.IntN(3)) * time.Second)
	if len(c.inputs) < 3 || c.random.IntN(12) == 0 {
		c.inputs = append(c.inputs, &changingInput{start: c.clock.Add(-time.Millisecond), point: point{name: "m", kind: cumulative, attrs: attrs{
			"user": int64(c.random.IntN(3)), "route": int64(c.random.IntN(2)), "id": int64(len(c.inputs)),
		}}})
	}
	for _, in := range c.inputs {
		if c.random.IntN(3) > 0 {
			c.say(in)
		}
	}
	switch c.random.IntN(20) {
	case 0, 1, 2, 3:
		c.deliver(c.random.IntN(3) > 0)
	case 4:
		c.restart()
	case 5:
		if c.kills {
			c.seen["kill"]++
			after := c.host.killed()
			c.Snapshot.Storage = nil
			c.again(after)
		}
	case 6, 7:
		c.seen["reload"]++
		c.rule = c.version()
		cfg := *c.cfg
		c.config()(&cfg)
		c.Apply(&cfg)
		c.ruled()
	}
}

// say sends a point of an input, and reports whether it was accepted.
func (c *changing) say(in *changingInput) bool {
	if !c.kills && c.random.IntN(15) == 0 {
		c.seen["reset"]++
		c.want += in.accepted
		in.start, in.value, in.accepted = c.clock.Add(-time.Millisecond), 0, 0
	}
	in.value += int64(c.random.IntN(20))
	md := c.timed(in.point, in.start, c.clock, in.value)
	metricsOf(point{name: "exempt"}).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	c.err = nil
	if c.random.IntN(6) == 0 {
		c.err = errBusy
		require.ErrorIs(c.t, c.front.ConsumeMetrics(c.t.Context(), md), errBusy)
		return false
	}
	before := in.accepted
	c.piped.seen = func(md pmetric.Metrics) {
		c.pass(in, before, md)
		c.count(md)
	}
	require.NoError(c.t, c.front.ConsumeMetrics(c.t.Context(), md))
	c.piped.seen = func(pmetric.Metrics) {}
	in.accepted = in.value
	return true
}

// ruled restarts inputs that were not sent yet: counters that started before the rule was in force would be missing.
func (c *changing) ruled() {
	for _, in := range c.inputs {
		if in.accepted == 0 && !c.kills {
			in.start = c.clock
		}
	}
}

// pass records that an input passes by itself: what an aggregate contains of it since it last passed is counted once
// more.
func (c *changing) pass(in *changingInput, before int64, md pmetric.Metrics) {
	for id, p := range allPoints(md) {
		switch {
		case id != in.identity():
		case amount.WhenAt(p.metric, p.at).NoValue:
			c.seen["back"]++
		default:
			c.want += before - c.last[streamOf(id, p)]
		}
	}
}

// streamOf distinguishes series of the same identity that restarted.
func streamOf(id string, p placed) string {
	return fmt.Sprint(id, " ", uint64(amount.WhenAt(p.metric, p.at).Start))
}

func (c *changing) deliver(accept bool) {
	c.clock = c.clock.Add(time.Millisecond)
	if c.next = c.sink; !accept {
		c.next = consumertest.NewErr(errors.New("busy"))
		c.seen["busy"]++
	}
	c.sink.Reset()
	c.pour(c.t.Context(), c.Aggregator.All(c.clock))
	c.next = c.sink
	c.take()
}

func (c *changing) take() {
	for _, md := range c.sink.AllMetrics() {
		c.count(md)
	}
	c.sink.Reset()
}

// restart shuts the process down properly, and starts another one, perhaps with another rule.
func (c *changing) restart() {
	c.seen["restart"]++
	c.sink.Reset()
	require.NoError(c.t, c.shutdown(c.t.Context()))
	c.take()
	c.again(c.host)
}

func (c *changing) again(host *memory) {
	if c.random.IntN(2) == 0 {
		c.rule = c.version()
	}
	now := c.clock.Add(time.Second)
	c.host, c.piped = host, newPiped(c.t, c.config())
	c.clock = now
	c.Overflow.Begin = pcommon.NewTimestampFromTime(now)
	require.NoError(c.t, c.begin(host))
	c.ruled()
}

func (c *changing) count(md pmetric.Metrics) {
	for id, p := range allPoints(md) {
		if p.metric.Name() == "exempt" || amount.WhenAt(p.metric, p.at).NoValue {
			continue
		}
		n, _ := reading(p.metric, p.at)
		stream := streamOf(id, p)
		require.GreaterOrEqual(c.t, n, c.last[stream], "seed %d: %s", c.seed, stream)
		c.got += n - c.last[stream]
		c.last[stream] = n
	}
}
