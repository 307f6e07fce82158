// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
)

// piped is a processor as a pipeline has it, with what comes after it.
type piped struct {
	*rig

	front processor.Metrics
	err   error                 // what the next consumer says
	seen  func(pmetric.Metrics) // what it does before
}

func newPiped(t testing.TB, change func(*Config)) *piped {
	p := &piped{rig: newRig(t, change), seen: func(pmetric.Metrics) {}}
	p.pipe()
	return p
}

// pipe puts the present process into the pipeline.
func (p *piped) pipe() {
	next, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		p.seen(md)
		if p.err != nil {
			return p.err
		}
		return p.sink.ConsumeMetrics(ctx, md)
	})
	require.NoError(p.t, err)
	p.next = next
	p.front, err = p.pass(p.t.Context(), processortest.NewNopSettings(metadata.Type), next)
	require.NoError(p.t, err)
}

var errBusy = errors.New("sending queue is full")

// A batch that is refused has not been: what was to be added is added once, by the batch that is accepted.
func TestRefusedBatchesAddNothing(t *testing.T) {
	for _, k := range []kind{cumulative, delta, upDown, histogram, exponential, summary, gauge} {
		for _, refusal := range []error{errBusy, consumererror.NewPermanent(errBusy)} {
			p := newPiped(t, overflowing(1, func(rule *RuleConfig) { rule.Exceed.Gauge = "mean" }))
			start := p.clock
			batch := func(n int64) pmetric.Metrics {
				md := pmetric.NewMetrics()
				for i := range 4 {
					point := series(i)
					point.kind = k
					p.timed(point, start, p.clock, n).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
				}
				return md
			}
			for round := range 3 {
				p.clock = p.clock.Add(time.Second)
				p.err = refusal
				for range 3 {
					require.ErrorIs(t, p.front.ConsumeMetrics(t.Context(), batch(int64(10*(1+round)))), refusal)
				}
				if round == 0 {
					require.Zero(t, p.overflow.used+p.overflow.staged)
					require.Empty(t, p.overflow.outputs)
				}
				p.err = nil
				require.NoError(t, p.front.ConsumeMetrics(t.Context(), batch(int64(10*(1+round)))))
			}
			require.Equal(t, int64(3*3), p.rejected("r", "max_series", "overflow"))
			require.Equal(t, int64(3*4), p.pointsIn.Load())
			require.Equal(t, int64(3), p.pointsPassed.Load())
			n, _ := reading(onlyMetric(t, p.flushed(time.Second)), 0)
			switch k {
			case delta, exponential:
				require.Equal(t, int64(3*(10+20+30)), n, "kind %d", k)
			case gauge:
				require.Equal(t, int64(20), n)
			default:
				require.Equal(t, int64(3*30), n, "kind %d", k)
			}
			require.Zero(t, p.unaccounted(""))
		}
	}
}

// Whoever does not send a refused batch again loses nothing of what is cumulative: the next value has it.
func TestCumulativeValuesOutliveABatchThatIsGivenUp(t *testing.T) {
	p := newPiped(t, overflowing(1))
	other := point{name: "other"}
	p.send(other)
	start := p.clock
	send := func(n int64) error {
		p.clock = p.clock.Add(time.Second)
		point := series(1)
		point.kind = cumulative
		md := p.timed(point, start, p.clock, n)
		metricsOf(other).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
		return p.front.ConsumeMetrics(t.Context(), md)
	}
	require.NoError(t, send(5))
	p.err = errBusy
	require.Error(t, send(7))
	require.Error(t, send(8))
	p.err = nil
	require.NoError(t, send(11))
	n, _ := reading(onlyMetric(t, p.flushed(time.Second)), 0)
	require.Equal(t, int64(11), n)
}

// No lock is held while the next consumer has a batch, and batches may be accepted in another order than they came in.
func TestBatchesAreAcceptedInAnyOrder(t *testing.T) {
	for _, refused := range []int{-1, 0, 1} {
		p := newPiped(t, overflowing(1))
		p.send(point{name: "other"})
		start := p.clock
		came, said := make(chan chan error), make(chan error)
		next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error {
			verdict := make(chan error)
			came <- verdict
			return <-verdict
		})
		require.NoError(t, err)
		front, err := p.pass(t.Context(), processortest.NewNopSettings(metadata.Type), next)
		require.NoError(t, err)
		var verdicts []chan error
		for i := range 2 {
			p.clock = p.clock.Add(time.Second)
			md := metricsOf(point{name: "other"})
			for _, k := range []kind{cumulative, delta, histogram} {
				point := series(1)
				point.kind, point.name = k, []string{"", "c", "d", "", "h"}[k]
				p.timed(point, start, p.clock, int64(10*(i+1))).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
			}
			go func() { said <- front.ConsumeMetrics(context.Background(), md) }()
			verdicts = append(verdicts, <-came)
		}
		p.flush(t.Context()) // nobody waits for the next consumer
		p.epochs(1)
		p.apply(p.cfg)
		for _, i := range []int{1, 0} {
			verdict := error(nil)
			if i == refused {
				verdict = errBusy
			}
			verdicts[i] <- verdict
			require.ErrorIs(t, <-said, verdict)
		}
		got := map[string]int64{}
		for _, rm := range p.flushed(time.Second).ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				got[m.Name()], _ = reading(m, 0)
			}
		}
		want := map[int]map[string]int64{
			-1: {"c": 20, "d": 30, "h": 20}, 0: {"c": 20, "d": 20, "h": 20}, 1: {"c": 10, "d": 10, "h": 10},
		}
		require.Equal(t, want[refused], got, "refused: %d", refused)
		require.Zero(t, p.overflow.staged)
	}
}
