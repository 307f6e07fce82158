// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// subject is the overview of a test's world.
type subject struct {
	*consoletest.World

	view View
}

func open(t *testing.T) *subject {
	t.Helper()
	w := consoletest.New(t)
	return &subject{w, View{Sources: w.Sources, Service: w.Service, Meter: w.Meter}}
}

func (s *subject) get() overviewJSON {
	s.T.Helper()
	return consoletest.Get[overviewJSON](s.T, s.view.Answer, "")
}

func TestAReceiverOfSeveralSignalsTellsThemApart(t *testing.T) {
	s := open(t)
	s.Configure(`
receivers: {otlpstream: {}}
processors: {batch: {}}
exporters: {otlp: {}}
service:
  extensions: [console]
  pipelines:
    metrics: {receivers: [otlpstream], processors: [batch], exporters: [otlp]}
    traces: {receivers: [otlpstream], exporters: [otlp]}
    logs: {receivers: [otlpstream], exporters: [otlp]}
`)
	receiver := s.Counter(component.KindReceiver, "otlpstream")
	s.Pass()
	receiver.Flow = inspect.Flow{In: 500, Out: 300, Signals: map[string]inspect.SignalFlow{"metrics": {In: 300, Out: 200}, "traces": {In: 200, Out: 100}}}
	s.Clock.Pass(meter.Interval)
	rates := map[string]*float64{}
	for _, p := range s.get().Pipelines {
		for _, e := range p.Edges {
			rates[p.ID+": "+e.From+" > "+e.To] = e.Rate
		}
	}
	require.Equal(t, map[string]*float64{
		"metrics: receiver/otlpstream > processor/batch": known.Number(10),
		"metrics: processor/batch > exporter/otlp":       nil,
		"traces: receiver/otlpstream > exporter/otlp":    known.Number(5),
		"logs: receiver/otlpstream > exporter/otlp":      nil,
	}, rates)
}

func TestRatesOnArrowsAreThoseThatAreKnown(t *testing.T) {
	s := open(t)
	s.Configure(consoletest.Pipelines)
	receiver, processor := s.Counter(component.KindReceiver, "fastprometheus"), s.Counter(component.KindProcessor, "cardinality")
	exporter := s.Counter(component.KindExporter, "remotewrite")
	s.Pass()
	receiver.Flow = inspect.Flow{In: 2200, Out: 2000, WireBytes: 10000}
	processor.Flow = inspect.Flow{In: 2000, Out: 1800, Limited: 200}
	exporter.Flow = inspect.Flow{In: 1800, Out: 1780, WireBytes: 3560, QueuedBytes: 7}
	s.Clock.Pass(meter.Interval)

	o := s.get()
	require.InDelta(t, 20, *o.Over, 0)
	rates := map[string]*float64{}
	for _, p := range o.Pipelines {
		for _, e := range p.Edges {
			rates[p.ID+": "+e.From+" > "+e.To] = e.Rate
		}
	}
	require.Equal(t, map[string]*float64{
		"metrics: receiver/fastprometheus > processor/memory_limiter": known.Number(100),
		"metrics: processor/memory_limiter > processor/cardinality":   known.Number(100),
		"metrics: processor/cardinality > exporter/remotewrite":       known.Number(90),
		"metrics: processor/cardinality > connector/forward":          known.Number(90),
		"metrics/2: connector/forward > processor/batch":              nil,
		"metrics/2: processor/batch > exporter/otlp":                  nil,
		"traces: receiver/otlp > exporter/otlp":                       nil,
	}, rates)
	require.InDelta(t, 110, *o.Totals.In, 0)
	require.InDelta(t, 10, *o.Totals.Limited, 0)
	require.InDelta(t, 89, *o.Totals.Out, 0)
	require.InDelta(t, 2, *o.Totals.PerSample, 0)
	require.InDelta(t, 500, *o.Totals.Received, 0)
	require.Equal(t, int64(7), o.Totals.Queued)

	seen := map[string]bool{}
	for _, n := range o.Nodes {
		seen[n.ID] = n.Seen
		require.Equal(t, n.Seen, n.Rates != nil, n.ID)
	}
	require.Len(t, seen, 8)
	require.True(t, seen["exporter/remotewrite"])
	require.False(t, seen["processor/memory_limiter"])
}

func TestWithoutConfigurationThereIsNoPicture(t *testing.T) {
	o := open(t).get()
	require.Empty(t, o.Pipelines)
	require.Empty(t, o.Nodes)
	require.Equal(t, "ok", o.Health)
	require.Positive(t, o.Process.Goroutines)
}

func TestStatusIsTheWorstOfAllInstances(t *testing.T) {
	s := open(t)
	s.Configure(consoletest.Pipelines)
	a := componentstatus.NewInstanceID(consoletest.ID("batch"), component.KindProcessor)
	s.Service.Changed(a, componentstatus.NewEvent(componentstatus.StatusOK))
	b := componentstatus.NewInstanceID(consoletest.ID("remotewrite"), component.KindExporter)
	s.Service.Changed(b, componentstatus.NewRecoverableErrorEvent(errors.New("cannot reach http://me:s3cr3t@mimir")))
	o := s.get()
	require.Equal(t, "degraded", o.Health)
	for _, n := range o.Nodes {
		switch n.ID {
		case "processor/batch":
			require.Equal(t, "ok", n.Status)
			require.NotNil(t, n.StatusSince)
		case "exporter/remotewrite":
			require.Equal(t, "recoverable_error", n.Status)
			require.Equal(t, "cannot reach http://[REDACTED]@mimir", n.StatusError)
		default:
			require.Equal(t, "none", n.Status)
		}
	}
	s.Service.Changed(b, componentstatus.NewEvent(componentstatus.StatusOK))
	require.Equal(t, "ok", s.get().Health)
}

// The diagram has the targets of each receiver.
func TestTargetsAreThoseOfTheirReceiver(t *testing.T) {
	s := open(t)
	s.Configure("receivers: {a: {}, b: {}}\nexporters: {nop: {}}\nservice: {pipelines: {metrics: {receivers: [a, b], exporters: [nop]}}}\n")
	for name, n := range map[string]int{"a": 3, "b": 5} {
		s.Register(inspect.Source{
			Kind: component.KindReceiver, ID: consoletest.ID(name), Signal: "metrics", Targets: func() inspect.Targets { return inspect.Targets{} },
			Flow: func() inspect.Flow {
				return inspect.Flow{Targets: map[string]int{inspect.Healthy: n, inspect.Failing: 1, meter.Dropped: 2}}
			},
		})
	}
	o := s.get()
	require.Equal(t, meter.Counts{Healthy: 8, Failing: 2, Dropped: 4}, o.Targets)
	require.Equal(t, &meter.Counts{Healthy: 3, Failing: 1, Dropped: 2}, o.Nodes[0].Targets)
	require.Equal(t, &meter.Counts{Healthy: 5, Failing: 1, Dropped: 2}, o.Nodes[1].Targets)
	require.Nil(t, o.Nodes[2].Targets)
}

// The diagram of a pipeline has the numbers of its own instances.
func TestEachPipelineHasItsOwnInstance(t *testing.T) {
	s := open(t)
	s.Configure("service:\n  pipelines:\n    metrics/1: {receivers: [a], processors: [p], exporters: [x]}\n    metrics/2: {receivers: [a, b], processors: [p], exporters: [x]}\n")
	flows := map[string]*inspect.Flow{"metrics/1": {}, "metrics/2": {}}
	for of, flow := range flows {
		s.Register(inspect.Source{Kind: component.KindProcessor, ID: consoletest.ID("p"), Pipeline: of, Flow: func() inspect.Flow { return *flow }})
	}
	s.Pass()
	*flows["metrics/1"], *flows["metrics/2"] = inspect.Flow{In: 1000, Out: 600, Limited: 400}, inspect.Flow{In: 3000, Out: 2000, Limited: 1000}
	s.Clock.Pass(meter.Interval)
	drawn := s.get().Pipelines
	require.InDelta(t, 20, *drawn[0].Instances["processor/p"].Limited, 0.01)
	require.InDelta(t, 50, *drawn[1].Instances["processor/p"].Limited, 0.01)
	rateOf := func(p pipelineJSON, from, to string) *float64 {
		for _, e := range p.Edges {
			if e.From == from && e.To == to {
				return e.Rate
			}
		}
		return nil
	}
	require.InDelta(t, 50, *rateOf(drawn[0], "receiver/a", "processor/p"), 0.01)
	require.InDelta(t, 30, *rateOf(drawn[0], "processor/p", "exporter/x"), 0.01)
	require.Nil(t, rateOf(drawn[1], "receiver/a", "processor/p"), "which part of what came in is whose is not known")
	require.InDelta(t, 100, *rateOf(drawn[1], "processor/p", "exporter/x"), 0.01)
}

// A chart ends with the number above it.
func TestTheHistoryGoesOnWithTheseNumbers(t *testing.T) {
	s := open(t)
	s.Configure(consoletest.Pipelines)
	x := s.Exporter("remotewrite", inspect.Destination{Name: "a", Sent: 4})
	require.Nil(t, s.get().Totals.Out, "nobody knows yet")
	s.Clock.Pass(meter.Interval)
	x.Delivery.Destinations[0].Sent = 50
	o := s.get()
	require.NotNil(t, o.Totals.Out)
	require.Equal(t, o.Totals.Out, o.Latest["out"])
	require.Equal(t, o.Process.RSS, o.Latest["rss"])
}
