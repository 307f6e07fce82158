// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/metadata"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
)

// piped is a processor in a pipeline, with its next consumer.
type piped struct {
	*rig

	front processor.Metrics
	err   error                 // what the next consumer returns
	seen  func(pmetric.Metrics) // what it calls before
}

func newPiped(t testing.TB, change func(*Config)) *piped {
	p := &piped{rig: newRig(t, change), seen: func(pmetric.Metrics) {}}
	p.pipe()
	return p
}

// pipe puts the current process into the pipeline.
func (p *piped) pipe() {
	next, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		p.seen(md)
		if p.err != nil {
			return p.err
		}
		return p.sink.ConsumeMetrics(ctx, md)
	})
	require.NoError(p.t, err)
	p.front, err = p.pass(processortest.NewNopSettings(metadata.Type), next)
	require.NoError(p.t, err)
}

var errBusy = errors.New("sending queue is full")

// A refused batch does not count: its values are added once, by the batch that is accepted.
func TestRefusedBatchesAddNothing(t *testing.T) {
	for _, k := range []kind{cumulative, delta, upDown, histogram, exponential, summary, gauge} {
		for _, refusal := range []error{errBusy, consumererror.NewPermanent(errBusy)} {
			p := newPiped(t, overflowing(1, func(rule *RuleConfig) { rule.Exceed.Gauge = policy.NameMean }))
			start := p.clock
			batch := func(n int64) pmetric.Metrics {
				md := pmetric.NewMetrics()
				for i := range 4 {
					point := aSeries(i)
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
					require.Zero(t, p.Overflow.All.Used.Load()+p.Overflow.All.Staged.Load())
					require.Empty(t, p.Overflow.Outputs)
				}
				p.err = nil
				require.NoError(t, p.front.ConsumeMetrics(t.Context(), batch(int64(10*(1+round)))))
			}
			require.Equal(t, int64(3*3), p.rejected("r", "max_series", "overflow"))
			require.Equal(t, int64(3*4), p.Points.In.Load())
			require.Equal(t, int64(3), p.Points.Passed.Load())
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

// If a refused batch is not retried, no cumulative value is lost: the next one includes it.
func TestCumulativeValuesOutliveABatchThatIsGivenUp(t *testing.T) {
	p := newPiped(t, overflowing(1))
	other := point{name: "other"}
	p.send(other)
	start := p.clock
	send := func(n int64) error {
		p.clock = p.clock.Add(time.Second)
		point := aSeries(1)
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

// No lock is held while the next consumer has a batch, and batches may be accepted in a different order than they
// arrived in.
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
		front, err := p.pass(processortest.NewNopSettings(metadata.Type), next)
		require.NoError(t, err)
		var verdicts []chan error
		for i := range 2 {
			p.clock = p.clock.Add(time.Second)
			md := metricsOf(point{name: "other"})
			for _, k := range []kind{cumulative, delta, histogram} {
				point := aSeries(1)
				point.kind, point.name = k, []string{"", "c", "d", "", "h"}[k]
				p.timed(point, start, p.clock, int64(10*(i+1))).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
			}
			go func() { said <- front.ConsumeMetrics(context.Background(), md) }()
			verdicts = append(verdicts, <-came)
		}
		p.flush(t.Context()) // does not wait for the next consumer
		p.epochs(1)
		p.Apply(p.cfg)
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
		require.Zero(t, p.Overflow.All.Staged.Load())
	}
}

// The last points of a series that lost its place are sent in a batch that is accepted.
func TestLastPointsAreSaidUntilTheyWereAccepted(t *testing.T) {
	for _, k := range []kind{gauge, cumulative, upDown, histogram} {
		p := newPiped(t, overflowing(1))
		p.sink.Reset()
		s := aSeries(1)
		s.kind = k
		start := p.clock
		send := func(n int64) (values, marks int) {
			p.clock = p.clock.Add(time.Second)
			p.sink.Reset()
			for _, p.err = range []error{errBusy, consumererror.NewPermanent(errBusy), nil} {
				md := metricsOf(point{name: "other"})
				p.timed(s, start, p.clock, n).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
				require.ErrorIs(t, p.front.ConsumeMetrics(t.Context(), md), p.err)
			}
			for _, rm := range p.sink.AllMetrics()[0].ResourceMetrics().All() {
				switch m := rm.ScopeMetrics().At(0).Metrics().At(0); {
				case m.Name() == "other":
				case amount.WhenAt(m, 0).NoValue:
					marks++
				default:
					got, _ := reading(m, 0)
					require.Equal(t, n, got)
					values++
				}
			}
			return values, marks
		}
		p.consume(p.timed(s, start, p.clock, 5))
		p.idle()
		p.send(point{name: "other"})
		var said [][2]int
		for _, n := range []int64{7, 9, 12} {
			values, marks := send(n)
			said = append(said, [2]int{values, marks})
		}
		want := [][2]int{{0, 1}, {0, 0}, {0, 0}}
		if amount.ClassOf(onlyMetricOf(metricsOf(s))) == amount.ClassCumulative {
			want = [][2]int{{1, 0}, {0, 1}, {0, 0}}
			n, _ := reading(onlyMetric(t, p.flushed(time.Second)), 0)
			require.Equal(t, int64(12-7), n, "the rest is what it said itself")
		}
		require.Equal(t, want, said, "kind %d", k)
	}
}

// Rates count points that passed: a refused batch gives back its tokens.
func TestRefusedBatchesUseUpNoRate(t *testing.T) {
	p := newPiped(t, func(c *Config) {
		c.Rules = []RuleConfig{{Name: "a", MaxPointsPerSecond: 1}, {Name: "b", GroupBy: []string{"attribute:i"}, MaxPointsPerSecond: 100}}
	})
	send := func() error {
		md := pmetric.NewMetrics()
		for i := range 30 {
			appendPoint(md, aSeries(i%3))
		}
		return p.front.ConsumeMetrics(t.Context(), md)
	}
	p.err = errBusy
	for range 10 {
		require.ErrorIs(t, send(), errBusy)
	}
	p.err = nil
	require.NoError(t, send())
	require.Equal(t, 30, p.sink.DataPointCount())
	require.NoError(t, send())
	require.Equal(t, 60, p.sink.DataPointCount(), "a minute's worth may come at once")
	require.NoError(t, send())
	require.Equal(t, 60, p.sink.DataPointCount())
	require.Equal(t, int64(30), p.rejected("a", "points_rate", "drop"))
}

// The next consumer may do anything with a batch, including panic.
func TestBatchesBelongToTheNextConsumer(t *testing.T) {
	spoil := func(md pmetric.Metrics) {
		for _, rm := range md.ResourceMetrics().All() {
			rm.Resource().Attributes().PutStr("spoilt", "yes")
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				m.SetName("spoilt")
				m.SetEmptySummary().DataPoints().AppendEmpty()
			}
		}
	}
	var kept []pmetric.Metrics
	for name, next := range map[string]func(pmetric.Metrics){
		"renames": spoil,
		"empties": func(md pmetric.Metrics) { pmetric.NewMetrics().MoveTo(md) },
		"takes":   func(md pmetric.Metrics) { md.MoveTo(pmetric.NewMetrics()) },
		"keeps":   func(md pmetric.Metrics) { kept = append(kept, md); spoil(kept[0]) },
		"panics":  func(pmetric.Metrics) { panic("next") },
	} {
		p := newPiped(t, overflowing(1))
		start := p.clock
		send := func(n int64) {
			p.clock = p.clock.Add(time.Second)
			md := metricsOf(point{name: "other"})
			for _, k := range []kind{delta, cumulative, histogram} {
				s := aSeries(int(k))
				s.kind, s.name = k, "m"
				p.timed(s, start, p.clock, n).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
			}
			defer func() { require.Equal(t, name == "panics" && n < 30, recover() != nil) }()
			require.NoError(t, p.front.ConsumeMetrics(t.Context(), md))
		}
		p.seen = next
		send(10)
		send(20)
		if name == "panics" {
			require.Zero(t, p.Overflow.All.Used.Load()+p.Overflow.All.Staged.Load())
			p.seen = func(pmetric.Metrics) {}
			p.Apply(p.cfg) // no lock was left behind
		}
		send(30)
		got := map[amount.Class]int64{}
		for _, m := range onlyResource(p.flushed(time.Second)).ScopeMetrics().At(0).Metrics().All() {
			require.Equal(t, "m", m.Name(), name)
			n, _ := reading(m, 0)
			got[amount.ClassOf(m)] += n
		}
		want := map[amount.Class]int64{amount.ClassDelta: 60, amount.ClassCumulative: 30 + 30}
		if name == "panics" {
			want[amount.ClassDelta] = 30
		}
		require.Equal(t, want, got, name)
	}
}

func onlyResource(md pmetric.Metrics) pmetric.ResourceMetrics {
	if md.ResourceMetrics().Len() != 1 {
		panic("not one resource")
	}
	return md.ResourceMetrics().At(0)
}

// Time advances while the next consumer is busy with a flush.
func TestABlockedFlushDoesNotStopTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { <-block; return nil })
		require.NoError(t, err)
		cfg := defaultConfig()
		overflowing(1)(cfg)
		cfg.IdleTimeout, cfg.Overflow.Interval = 16*time.Second, time.Second
		set := processortest.NewNopSettings(metadata.Type)
		set.ID = component.NewID(metadata.Type)
		p, err := newProcessor(cfg, set, next)
		require.NoError(t, err)
		require.NoError(t, p.start(t.Context(), componenttest.NewNopHost()))
		md := metricsOf(point{name: "m", kind: delta}, point{name: "m", kind: delta, attrs: attrs{"i": 1}})
		_, err = p.process(t.Context(), md)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		before := p.Limiter.Now().Epoch()
		time.Sleep(5 * time.Second)
		require.InDelta(t, 5, float64(p.Limiter.Now().Epoch()-before), 1)
		close(block)
		require.NoError(t, p.shutdown(t.Context()))
	})
}
