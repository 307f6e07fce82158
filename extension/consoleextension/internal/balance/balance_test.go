// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/internal/inspect"
)

func totalsOf(s *consoletest.World) Totals { return Of(s.Meter.Look(), s.Service.Graph()) }

const fanOut = `
receivers: {fastprometheus: {}, remotewrite: {}}
exporters: {remotewrite: {}, remotewrite/2: {}, nop: {}}
service:
  pipelines:
    metrics: {receivers: [fastprometheus], exporters: [remotewrite, remotewrite/2]}
    metrics/own: {receivers: [remotewrite], exporters: [nop]}
`

func TestDataIsCountedOnce(t *testing.T) {
	f := func(name string, in, out float64, destinations int, arrange func(s *consoletest.World) (count func())) {
		t.Run(name, func(t *testing.T) {
			s := consoletest.New(t)
			s.Configure(fanOut)
			receiver := s.Counter(component.KindReceiver, "fastprometheus")
			count := arrange(s)
			s.Pass()
			receiver.Flow.In = 2000
			count()
			s.Clock.Pass(meter.Interval)
			got := totalsOf(s)
			require.InDelta(t, in, *got.In, 0.01)
			require.InDelta(t, out, *got.Out, 0.01)
			require.Equal(t, destinations, got.Destinations)
		})
	}
	a, b := inspect.Destination{Name: "http://a/api"}, inspect.Destination{Name: "http://b/api"}
	f("one destination", 100, 100, 1, func(s *consoletest.World) func() {
		x := s.Exporter("remotewrite", a)
		return func() { x.Delivery.Destinations[0].Sent = 2000 }
	})
	f("the slower of two", 100, 25, 2, func(s *consoletest.World) func() {
		x := s.Exporter("remotewrite", a, b)
		return func() { x.Delivery.Destinations[0].Sent, x.Delivery.Destinations[1].Sent = 2000, 500 }
	})
	f("two that share", 100, 100, 2, func(s *consoletest.World) func() {
		x := s.Exporter("remotewrite", a, b)
		x.Delivery.Split = true
		return func() { x.Delivery.Destinations[0].Sent, x.Delivery.Destinations[1].Sent = 1500, 500 }
	})
	f("the slower of two exporters", 100, 5, 2, func(s *consoletest.World) func() {
		x, y := s.Exporter("remotewrite", a), s.Exporter("remotewrite/2", b)
		return func() { x.Delivery.Destinations[0].Sent, y.Delivery.Destinations[0].Sent = 2000, 100 }
	})
	f("through a receiver of our own", 100, 100, 1, func(s *consoletest.World) func() {
		x := s.Exporter("remotewrite", inspect.Destination{Name: "http://127.0.0.1:19291/api/v1/write"})
		own := &inspect.Flow{}
		s.Register(inspect.Source{
			Kind: component.KindReceiver, ID: consoletest.ID("remotewrite"), Flow: func() inspect.Flow { return *own },
			Intake: func() inspect.Intake { return inspect.Intake{Addresses: []string{"[::]:19291"}} },
		})
		return func() { x.Delivery.Destinations[0].Sent, own.In = 2000, 2000 }
	})
}

// Pipelines that share a receiver get the same data, and data that comes back through one of our own receivers is
// counted where it leaves.
func TestDataIsCountedOnceInSeveralPipelines(t *testing.T) {
	f := func(name, pipelines string, in, out, lost float64, destinations int, arrange func(s *consoletest.World) (count func())) {
		t.Run(name, func(t *testing.T) {
			s := consoletest.New(t)
			s.Configure("service:\n  pipelines:\n" + pipelines)
			a, b := s.Counter(component.KindReceiver, "a"), s.Counter(component.KindReceiver, "b")
			count := arrange(s)
			s.Pass()
			a.Flow.In, b.Flow.In = 2000, 1000
			count()
			s.Clock.Pass(meter.Interval)
			got := totalsOf(s)
			require.InDelta(t, in, *got.In, 0.01)
			require.InDelta(t, out, *got.Out, 0.01)
			require.InDelta(t, lost, *got.Dropped, 0.01)
			require.Equal(t, destinations, got.Destinations)
		})
	}
	sends := func(s *consoletest.World, name string, n int64, dropped map[string]int64) func() {
		x := s.Exporter(name, inspect.Destination{Name: "http://" + name + "/"})
		return func() { x.Delivery.Destinations[0].Sent, x.Delivery.Destinations[0].Dropped = n, dropped }
	}
	two := func(x, y int64, lostX, lostY map[string]int64) func(s *consoletest.World) func() {
		return func(s *consoletest.World) func() {
			first, second := sends(s, "x", x, lostX), sends(s, "y", y, lostY)
			return func() { first(); second() }
		}
	}
	const apart = "    metrics/1: {receivers: [a], exporters: [x]}\n    metrics/2: {receivers: [b], exporters: [y]}\n"
	f("receivers of their own", apart, 150, 150, 0, 2, two(2000, 1000, nil, nil))
	f("receivers of their own, one loses", apart, 150, 50, 100, 2, two(0, 1000, map[string]int64{"r": 2000}, nil))
	const shared = "    metrics/1: {receivers: [a, b], exporters: [x]}\n    metrics/2: {receivers: [a, b], exporters: [y]}\n"
	f("a receiver of both", shared, 150, 150, 0, 2, two(3000, 3000, nil, nil))
	f("a receiver of both, one is slow", shared, 150, 25, 0, 2, two(3000, 500, nil, nil))
	f("a receiver of both, both lose", shared, 150, 0, 150, 2, two(0, 0, map[string]int64{"r": 3000}, map[string]int64{"r": 3000}))
	const part = "    metrics/1: {receivers: [a, b], exporters: [x]}\n    metrics/2: {receivers: [b], exporters: [y]}\n"
	f("one gets more", part, 150, 150, 0, 2, two(3000, 1000, nil, nil))
	f("one gets less, and is down", part, 150, 100, 0, 2, two(3000, 0, nil, nil))
	f("one gets more, and is down", part, 150, 0, 0, 2, two(0, 1000, nil, nil))
	f("through a connector", "    metrics/1: {receivers: [a, b], exporters: [forward]}\n    metrics/2: {receivers: [forward], exporters: [x]}\n    metrics/3: {receivers: [a, b], exporters: [y]}\nconnectors: {forward: {}}\n", 150, 50, 0, 2, two(3000, 1000, nil, nil))
	f("two destinations of one, both lose", "    metrics: {receivers: [a, b], exporters: [x]}\n", 150, 0, 155, 2, func(s *consoletest.World) func() {
		x := s.Exporter("x", inspect.Destination{Name: "p"}, inspect.Destination{Name: "q"})
		return func() {
			x.Before = 100
			x.Delivery.Destinations[0].Dropped, x.Delivery.Destinations[1].Dropped = map[string]int64{"r": 3000}, map[string]int64{"r": 1500}
		}
	})
	f("through a receiver of our own and on", "    metrics/1: {receivers: [a, b], exporters: [x]}\n    metrics/2: {receivers: [own], exporters: [y]}\n", 150, 140, 0, 1, func(s *consoletest.World) func() {
		x := s.Exporter("x", inspect.Destination{Name: "127.0.0.1:4317"})
		y := s.Exporter("y", inspect.Destination{Name: "q"})
		own := &inspect.Flow{}
		s.Register(inspect.Source{
			Kind: component.KindReceiver, ID: consoletest.ID("own"), Flow: func() inspect.Flow { return *own },
			Intake: func() inspect.Intake { return inspect.Intake{Addresses: []string{"127.0.0.1:4317"}} },
		})
		return func() { x.Delivery.Destinations[0].Sent, own.In, y.Delivery.Destinations[0].Sent = 3000, 3000, 2800 }
	})
}

func TestAddressesLeadToReceivers(t *testing.T) {
	f := func(destination, address string, want bool) {
		t.Helper()
		require.Equal(t, want, leadsTo(destination, address), "%s, %s", destination, address)
	}
	f("http://127.0.0.1:19291/api/v1/write", "127.0.0.1:19291", true)
	f("http://localhost:19291/api/v1/write", "[::]:19291", true)
	f("b (127.0.0.1:4317)", "0.0.0.0:4317", true)
	f("127.0.0.1:4317", "127.0.0.1:4318", false)
	f("http://pond:19291/", "[::]:19291", false)
	f("http://pond/", "127.0.0.1:80", false)
	f("", "", false)
}

// What two pipelines with the same data both reject came in once; what one processor rejects after another is
// additional.
func TestWhatLimitsKeepOutIsCountedOnce(t *testing.T) {
	f := func(name string, want float64, pipelines string, limited map[string]int64) {
		t.Run(name, func(t *testing.T) {
			s := consoletest.New(t)
			s.Configure("connectors: {c: {}, made: {}}\nservice:\n  pipelines:\n" + pipelines)
			flows := map[string]*inspect.Flow{}
			for of := range limited {
				flows[of] = &inspect.Flow{}
				processor, pipeline, _ := strings.Cut(of, " in ")
				s.Register(inspect.Source{Kind: component.KindProcessor, ID: consoletest.ID(processor), Pipeline: pipeline, Flow: func() inspect.Flow { return *flows[of] }})
			}
			s.Pass()
			for of, n := range limited {
				flows[of].Limited = n
			}
			s.Clock.Pass(meter.Interval)
			require.InDelta(t, want, *totalsOf(s).Limited, 0.01)
		})
	}
	const same = "    metrics/1: {receivers: [a], processors: [p, q], exporters: [x]}\n    metrics/2: {receivers: [b, a], processors: [p], exporters: [y]}\n"
	f("of the same receiver", 100, same, map[string]int64{"p in metrics/1": 2000, "p in metrics/2": 1000})
	f("one after another", 150, same, map[string]int64{"p in metrics/1": 1000, "q": 2000, "p in metrics/2": 1000})
	f("of receivers of their own", 150, "    metrics/1: {receivers: [a], processors: [p], exporters: [x]}\n    metrics/2: {receivers: [b], processors: [p], exporters: [x]}\n",
		map[string]int64{"p in metrics/1": 2000, "p in metrics/2": 1000})
	f("shared by both", 100, same, map[string]int64{"p": 2000})
	const joined = "    metrics/1: {receivers: [a], processors: [p], exporters: [c, made]}\n    metrics/2: {receivers: [c], processors: [q], exporters: [x]}\n" +
		"    metrics/3: {receivers: [c], processors: [p], exporters: [x]}\n    logs: {receivers: [made], processors: [l], exporters: [x]}\n"
	f("behind a connector", 150, joined, map[string]int64{"p in metrics/1": 1000, "q": 2000, "p in metrics/3": 1000})
	f("of what a connector makes", 50, joined, map[string]int64{"l": 1000})
	f("of no pipeline that is known", 50, same, map[string]int64{"other in metrics/7": 1000})
}
