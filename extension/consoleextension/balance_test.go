// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// delivering is an exporter of some destinations, of which each has counted what a test says.
type delivering struct {
	d      inspect.Delivery
	before int64 // lost before it came to a destination
}

func (s *subject) delivering(name string, destinations ...inspect.Destination) *delivering {
	x := &delivering{d: inspect.Delivery{Destinations: destinations}}
	s.RegisterInspection(inspect.Source{
		Kind: component.KindExporter, ID: id(name), Signal: "metrics",
		Flow: func() (f inspect.Flow) {
			f.Dropped = map[string]int64{"untranslated": x.before}
			for _, d := range x.d.Destinations {
				f.Out += d.Sent
				f.WireBytes += d.WireBytes
				for reason, n := range d.Dropped {
					f.Dropped[reason] += n
				}
			}
			return f
		},
		Delivery: func() inspect.Delivery {
			return inspect.Delivery{Destinations: append([]inspect.Destination{}, x.d.Destinations...), Split: x.d.Split}
		},
	})
	return x
}

func totalsOf(s *subject) totalsJSON { return get[overviewJSON](s, "/api/v1/overview").Totals }

const fanOut = `
receivers: {fastprometheus: {}, remotewrite: {}}
exporters: {remotewrite: {}, remotewrite/2: {}, nop: {}}
service:
  pipelines:
    metrics: {receivers: [fastprometheus], exporters: [remotewrite, remotewrite/2]}
    metrics/own: {receivers: [remotewrite], exporters: [nop]}
`

func TestDataIsCountedOnce(t *testing.T) {
	f := func(name string, in, out float64, destinations int, arrange func(s *subject) (count func())) {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.configure(fanOut)
			receiver := s.counter(component.KindReceiver, "fastprometheus")
			count := arrange(s)
			s.clock.pass(sampleInterval)
			s.sample()
			receiver.flow.In = 2000
			count()
			s.clock.pass(sampleInterval)
			got := totalsOf(s)
			require.InDelta(t, in, *got.In, 0.01)
			require.InDelta(t, out, *got.Out, 0.01)
			require.Equal(t, destinations, got.To)
		})
	}
	a, b := inspect.Destination{Name: "http://a/api"}, inspect.Destination{Name: "http://b/api"}
	f("one destination", 100, 100, 1, func(s *subject) func() {
		x := s.delivering("remotewrite", a)
		return func() { x.d.Destinations[0].Sent = 2000 }
	})
	f("the slower of two", 100, 25, 2, func(s *subject) func() {
		x := s.delivering("remotewrite", a, b)
		return func() { x.d.Destinations[0].Sent, x.d.Destinations[1].Sent = 2000, 500 }
	})
	f("two that share", 100, 100, 2, func(s *subject) func() {
		x := s.delivering("remotewrite", a, b)
		x.d.Split = true
		return func() { x.d.Destinations[0].Sent, x.d.Destinations[1].Sent = 1500, 500 }
	})
	f("the slower of two exporters", 100, 5, 2, func(s *subject) func() {
		x, y := s.delivering("remotewrite", a), s.delivering("remotewrite/2", b)
		return func() { x.d.Destinations[0].Sent, y.d.Destinations[0].Sent = 2000, 100 }
	})
	f("through a receiver of our own", 100, 100, 1, func(s *subject) func() {
		x := s.delivering("remotewrite", inspect.Destination{Name: "http://127.0.0.1:19291/api/v1/write"})
		own := &inspect.Flow{}
		s.RegisterInspection(inspect.Source{
			Kind: component.KindReceiver, ID: id("remotewrite"), Flow: func() inspect.Flow { return *own },
			Intake: func() inspect.Intake { return inspect.Intake{Addresses: []string{"[::]:19291"}} },
		})
		return func() { x.d.Destinations[0].Sent, own.In = 2000, 2000 }
	})
}

// Pipelines that share a receiver get the same, and what comes back by a receiver of our own is counted where it leaves.
func TestDataIsCountedOnceInSeveralPipelines(t *testing.T) {
	f := func(name, pipelines string, in, out, lost float64, destinations int, arrange func(s *subject) (count func())) {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.configure("service:\n  pipelines:\n" + pipelines)
			a, b := s.counter(component.KindReceiver, "a"), s.counter(component.KindReceiver, "b")
			count := arrange(s)
			s.clock.pass(sampleInterval)
			s.sample()
			a.flow.In, b.flow.In = 2000, 1000
			count()
			s.clock.pass(sampleInterval)
			got := totalsOf(s)
			require.InDelta(t, in, *got.In, 0.01)
			require.InDelta(t, out, *got.Out, 0.01)
			require.InDelta(t, lost, *got.Dropped, 0.01)
			require.Equal(t, destinations, got.To)
		})
	}
	sends := func(s *subject, name string, n int64, dropped map[string]int64) func() {
		x := s.delivering(name, inspect.Destination{Name: "http://" + name + "/"})
		return func() { x.d.Destinations[0].Sent, x.d.Destinations[0].Dropped = n, dropped }
	}
	two := func(x, y int64, lostX, lostY map[string]int64) func(s *subject) func() {
		return func(s *subject) func() {
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
	f("two destinations of one, both lose", "    metrics: {receivers: [a, b], exporters: [x]}\n", 150, 0, 155, 2, func(s *subject) func() {
		x := s.delivering("x", inspect.Destination{Name: "p"}, inspect.Destination{Name: "q"})
		return func() {
			x.before = 100
			x.d.Destinations[0].Dropped, x.d.Destinations[1].Dropped = map[string]int64{"r": 3000}, map[string]int64{"r": 1500}
		}
	})
	f("through a receiver of our own and on", "    metrics/1: {receivers: [a, b], exporters: [x]}\n    metrics/2: {receivers: [own], exporters: [y]}\n", 150, 140, 0, 1, func(s *subject) func() {
		x := s.delivering("x", inspect.Destination{Name: "127.0.0.1:4317"})
		y := s.delivering("y", inspect.Destination{Name: "q"})
		own := &inspect.Flow{}
		s.RegisterInspection(inspect.Source{
			Kind: component.KindReceiver, ID: id("own"), Flow: func() inspect.Flow { return *own },
			Intake: func() inspect.Intake { return inspect.Intake{Addresses: []string{"127.0.0.1:4317"}} },
		})
		return func() { x.d.Destinations[0].Sent, own.In, y.d.Destinations[0].Sent = 3000, 3000, 2800 }
	})
}

// The picture has of each receiver its own targets.
func TestTargetsAreThoseOfTheirReceiver(t *testing.T) {
	s := open(t)
	s.configure("receivers: {a: {}, b: {}}\nexporters: {nop: {}}\nservice: {pipelines: {metrics: {receivers: [a, b], exporters: [nop]}}}\n")
	for name, n := range map[string]int{"a": 3, "b": 5} {
		s.RegisterInspection(inspect.Source{
			Kind: component.KindReceiver, ID: id(name), Signal: "metrics", Targets: func() inspect.Targets { return inspect.Targets{} },
			Flow: func() inspect.Flow {
				return inspect.Flow{Targets: map[string]int{inspect.Healthy: n, inspect.Failing: 1, stateDropped: 2}}
			},
		})
	}
	o := get[overviewJSON](s, "/api/v1/overview")
	require.Equal(t, counts{Healthy: 8, Failing: 2, Dropped: 4}, o.Targets)
	require.Equal(t, &counts{Healthy: 3, Failing: 1, Dropped: 2}, o.Nodes[0].Targets)
	require.Equal(t, &counts{Healthy: 5, Failing: 1, Dropped: 2}, o.Nodes[1].Targets)
	require.Nil(t, o.Nodes[2].Targets)
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

func TestRatesAreUnknownAtFirst(t *testing.T) {
	s := open(t)
	s.configure(fanOut)
	x := s.delivering("remotewrite", inspect.Destination{Name: "a", Taken: 10, Sent: 4, Waiting: 6})
	d := get[deliveryJSON](s, "/api/v1/delivery")
	require.Nil(t, d.Exporters[0].Destinations[0].LostRate, "it is not zero: nobody knows yet")
	require.Nil(t, d.Exporters[0].Destinations[0].WaitingRate)
	require.Nil(t, totalsOf(s).Out)

	s.clock.pass(sampleInterval)
	x.d.Destinations[0].Taken, x.d.Destinations[0].Sent, x.d.Destinations[0].Dropped, x.d.Destinations[0].Waiting = 100, 50, map[string]int64{"rejected": 40}, 10
	to := get[deliveryJSON](s, "/api/v1/delivery").Exporters[0].Destinations[0]
	require.InDelta(t, *to.TakenRate, *to.SentRate+*to.LostRate+*to.WaitingRate, 0.001)
	o := get[overviewJSON](s, "/api/v1/overview")
	require.Equal(t, o.Totals.Out, o.Latest["out"], "a chart ends with the number above it")
	require.Equal(t, o.Process.RSS, o.Latest["rss"])
}

func TestNumbersInSentences(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.314: "0.31", 9.996: "10", 45.55: "45.5", 999.6: "1k", 45_512: "45.5k", 1.2e6: "1.2M"} {
		require.Equal(t, want, short(n))
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -12345: "-12,345", 1234567: "1,234,567"} {
		require.Equal(t, want, grouped(n))
	}
}

// What two pipelines that get the same keep out has come in once; what one keeps out after another is more.
func TestWhatLimitsKeepOutIsCountedOnce(t *testing.T) {
	f := func(name string, want float64, pipelines string, limited map[string]int64) {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.configure("connectors: {c: {}, made: {}}\nservice:\n  pipelines:\n" + pipelines)
			flows := map[string]*inspect.Flow{}
			for of := range limited {
				flows[of] = &inspect.Flow{}
				processor, pipeline, _ := strings.Cut(of, " in ")
				s.RegisterInspection(inspect.Source{Kind: component.KindProcessor, ID: id(processor), Pipeline: pipeline, Flow: func() inspect.Flow { return *flows[of] }})
			}
			s.clock.pass(sampleInterval)
			s.sample()
			for of, n := range limited {
				flows[of].Limited = n
			}
			s.clock.pass(sampleInterval)
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

// In the picture of a pipeline are the numbers of its own instance.
func TestEachPipelineHasItsOwnInstance(t *testing.T) {
	s := open(t)
	s.configure("service:\n  pipelines:\n    metrics/1: {receivers: [a], processors: [p], exporters: [x]}\n    metrics/2: {receivers: [a, b], processors: [p], exporters: [x]}\n")
	flows := map[string]*inspect.Flow{"metrics/1": {}, "metrics/2": {}}
	for of, flow := range flows {
		s.RegisterInspection(inspect.Source{Kind: component.KindProcessor, ID: id("p"), Pipeline: of, Flow: func() inspect.Flow { return *flow }})
	}
	s.clock.pass(sampleInterval)
	s.sample()
	*flows["metrics/1"], *flows["metrics/2"] = inspect.Flow{In: 1000, Out: 600, Limited: 400}, inspect.Flow{In: 3000, Out: 2000, Limited: 1000}
	s.clock.pass(sampleInterval)
	drawn := get[overviewJSON](s, "/api/v1/overview").Pipelines
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
