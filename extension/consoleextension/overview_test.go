// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"

	"github.com/godwit-otel/godwit/internal/alloctest"
	"github.com/godwit-otel/godwit/internal/inspect"
)

const pipelines = `
receivers: {fastprometheus: {}, otlp: {}}
processors: {memory_limiter: {}, cardinality: {}, batch: {}}
exporters: {remotewrite: {}, otlp: {}}
connectors: {forward: {}}
service:
  extensions: [console]
  pipelines:
    metrics: {receivers: [fastprometheus], processors: [memory_limiter, cardinality], exporters: [remotewrite, forward]}
    metrics/2: {receivers: [forward], processors: [batch], exporters: [otlp]}
    traces: {receivers: [otlp], exporters: [otlp]}
`

// counter is a component that counts what a test says.
type counter struct{ flow inspect.Flow }

func (s *subject) counter(kind component.Kind, name string) *counter {
	c := &counter{}
	s.RegisterInspection(inspect.Source{Kind: kind, ID: id(name), Flow: func() inspect.Flow { return c.flow }})
	return c
}

func TestAReceiverOfSeveralSignalsTellsThemApart(t *testing.T) {
	s := open(t)
	s.configure(`
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
	receiver := s.counter(component.KindReceiver, "otlpstream")
	s.clock.pass(sampleInterval)
	s.sample()
	receiver.flow = inspect.Flow{In: 500, Out: 300, Signals: map[string]inspect.SignalFlow{"metrics": {In: 300, Out: 200}, "traces": {In: 200, Out: 100}}}
	s.clock.pass(sampleInterval)
	rates := map[string]*float64{}
	for _, p := range get[overviewJSON](s, "/api/v1/overview").Pipelines {
		for _, e := range p.Edges {
			rates[p.ID+": "+e.From+" > "+e.To] = e.Rate
		}
	}
	require.Equal(t, map[string]*float64{
		"metrics: receiver/otlpstream > processor/batch": number(10),
		"metrics: processor/batch > exporter/otlp":       nil,
		"traces: receiver/otlpstream > exporter/otlp":    number(5),
		"logs: receiver/otlpstream > exporter/otlp":      nil,
	}, rates)
}

func TestRatesOnArrowsAreThoseThatAreKnown(t *testing.T) {
	s := open(t)
	s.configure(pipelines)
	receiver, processor := s.counter(component.KindReceiver, "fastprometheus"), s.counter(component.KindProcessor, "cardinality")
	exporter := s.counter(component.KindExporter, "remotewrite")
	s.clock.pass(sampleInterval)
	s.sample()
	receiver.flow = inspect.Flow{In: 2200, Out: 2000, WireBytes: 10000}
	processor.flow = inspect.Flow{In: 2000, Out: 1800, Limited: 200}
	exporter.flow = inspect.Flow{In: 1800, Out: 1780, WireBytes: 3560, QueuedBytes: 7}
	s.clock.pass(sampleInterval)

	o := get[overviewJSON](s, "/api/v1/overview")
	require.InDelta(t, 20, *o.Over, 0)
	rates := map[string]*float64{}
	for _, p := range o.Pipelines {
		for _, e := range p.Edges {
			rates[p.ID+": "+e.From+" > "+e.To] = e.Rate
		}
	}
	require.Equal(t, map[string]*float64{
		"metrics: receiver/fastprometheus > processor/memory_limiter": number(100),
		"metrics: processor/memory_limiter > processor/cardinality":   number(100),
		"metrics: processor/cardinality > exporter/remotewrite":       number(90),
		"metrics: processor/cardinality > connector/forward":          number(90),
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

func TestRatesOfYoungComponentsBeginWithNothing(t *testing.T) {
	s := open(t)
	s.configure(pipelines)
	s.sample()
	s.clock.pass(5 * time.Second)
	receiver := s.counter(component.KindReceiver, "fastprometheus")
	require.Nil(t, get[overviewJSON](s, "/api/v1/overview").Totals.In, "no time has passed for it")
	s.clock.pass(2 * time.Second)
	receiver.flow.In = 20
	require.InDelta(t, 10, *get[overviewJSON](s, "/api/v1/overview").Totals.In, 0)
}

// A component that starts anew counts from nothing again: that is no negative rate.
func TestCountersThatGoBackAreNotKnown(t *testing.T) {
	s := open(t)
	s.configure(pipelines)
	receiver := s.counter(component.KindReceiver, "fastprometheus")
	receiver.flow = inspect.Flow{In: 100, Out: -1}
	for range 2 {
		s.clock.pass(sampleInterval)
		s.sample()
	}
	receiver.flow.In = 10
	s.clock.pass(sampleInterval)
	for _, n := range get[overviewJSON](s, "/api/v1/overview").Nodes {
		if n.ID == "receiver/fastprometheus" {
			require.Nil(t, n.Rates.In)
			require.Nil(t, n.Rates.Out, "not counted at all")
		}
	}
}

func TestWithoutConfigurationThereIsNoPicture(t *testing.T) {
	o := get[overviewJSON](open(t), "/api/v1/overview")
	require.Empty(t, o.Pipelines)
	require.Empty(t, o.Nodes)
	require.Equal(t, "ok", o.Health)
	require.Positive(t, o.Process.Goroutines)
}

func TestStatusIsTheWorstOfAllInstances(t *testing.T) {
	s := open(t)
	s.configure(pipelines)
	a := componentstatus.NewInstanceID(id("batch"), component.KindProcessor)
	s.ComponentStatusChanged(a, componentstatus.NewEvent(componentstatus.StatusOK))
	b := componentstatus.NewInstanceID(id("remotewrite"), component.KindExporter)
	s.ComponentStatusChanged(b, componentstatus.NewRecoverableErrorEvent(errors.New("cannot reach http://me:s3cr3t@mimir")))
	o := get[overviewJSON](s, "/api/v1/overview")
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
	s.ComponentStatusChanged(b, componentstatus.NewEvent(componentstatus.StatusOK))
	require.Equal(t, "ok", get[overviewJSON](s, "/api/v1/overview").Health)
}

func TestHistoryIsTheLastHour(t *testing.T) {
	s := open(t)
	receiver := s.counter(component.KindReceiver, "fastprometheus")
	for range 2 * ringSize {
		s.clock.pass(sampleInterval)
		receiver.flow.In += 100
		s.sample()
	}
	h := get[historyJSON](s, "/api/v1/history")
	require.Len(t, h.Times, ringSize)
	require.Len(t, h.Series, len(lines))
	require.Equal(t, s.clock.now().Unix(), h.Times[ringSize-1])
	require.Equal(t, int64(10), h.Times[1]-h.Times[0])
	for _, line := range h.Series {
		require.Len(t, line.Values, ringSize)
		switch line.Name {
		case "in":
			require.InDelta(t, 10, *line.Values[0], 0)
			require.InDelta(t, 10, *line.Values[ringSize-1], 0)
		case "out", "bytes_per_sample":
			require.Nil(t, line.Values[0], line.Name)
		}
	}
}

// What goes on while nobody looks is next to nothing: a thousandth of a core would be 10 ms of it in each interval.
func TestSamplingIsCheap(t *testing.T) {
	s := open(t)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		s.counter(component.KindProcessor, name)
	}
	allocations := alloctest.PerRun(s.sample)
	require.LessOrEqual(t, allocations, 60.0)
	const samples = 100
	began := cpuSeconds()
	for range samples {
		s.sample()
	}
	require.Less(t, (cpuSeconds()-began)/samples, 0.010)
}

func BenchmarkSample(b *testing.B) {
	c := newConsole(createDefaultConfig().(*Config), newSettings())
	flow := inspect.Flow{Dropped: map[string]int64{"a": 1}, Targets: map[string]int{inspect.Healthy: 1}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		c.RegisterInspection(inspect.Source{Kind: component.KindProcessor, ID: id(name), Flow: func() inspect.Flow { return flow }})
	}
	for b.Loop() {
		c.sample()
	}
	require.Equal(b, 1, c.read().flows[c.all()[0]].Targets[inspect.Healthy])
}
