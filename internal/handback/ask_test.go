// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handback

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/godwit-otel/godwit/internal/hostgraph"
)

// releasing is a component that says whether it releases metrics.
type releasing struct {
	component.StartFunc
	component.ShutdownFunc

	keeps error
}

func (r *releasing) ReleasesMetrics() error { return r.keeps }

// quiet is a component that does not.
type quiet struct {
	component.StartFunc
	component.ShutdownFunc

	_ int // otherwise all would have one address
}

type nopHost struct{}

func (nopHost) GetExtensions() map[component.ID]component.Component { return nil }

type exportingHost struct {
	component.Host

	exporters map[component.ID]component.Component
}

func (h exportingHost) GetExporters() map[pipeline.Signal]map[component.ID]component.Component {
	return map[pipeline.Signal]map[component.ID]component.Component{pipeline.SignalMetrics: h.exporters}
}

// The Collector's real graph is tested with its service, in the receiver.
func TestTheNearestObstacleComesFirst(t *testing.T) {
	yes, no, silentOne := &releasing{}, &releasing{keeps: errors.New("keeps them")}, &quiet{}
	host := exportingHost{nopHost{}, map[component.ID]component.Component{
		component.MustNewID("yes"): yes, component.MustNewID("no"): no, component.MustNewID("silent"): silentOne,
	}}
	a := func(kind component.Kind, name string, instance component.Component) hostgraph.Node {
		n := hostgraph.Node{Kind: kind, ID: name, Type: name}
		if instance != nil {
			n.Address = hostgraph.AddressOf(reflect.ValueOf(instance))
		}
		return n
	}
	exporter := func(name string, instance component.Component) []hostgraph.Node {
		return []hostgraph.Node{a(component.KindExporter, name, instance)}
	}
	processor := func(name string, instance component.Component) hostgraph.Node {
		return a(component.KindProcessor, name, instance)
	}
	known, unknown, keeper := &releasing{}, &releasing{}, &quiet{}
	t.Cleanup(Register(known, known))
	t.Cleanup(Register(keeper, no)) // a wrapper for which another component answers
	toYes := exporter("yes", yes)
	for name, c := range map[string]struct {
		roads []hostgraph.Pipeline
		want  []string
	}{
		"an exporter that keeps nothing": {[]hostgraph.Pipeline{{Name: "metrics", Processors: nil, Exporters: toYes}}, nil},
		"one that keeps metrics":         {[]hostgraph.Pipeline{{Name: "metrics", Processors: nil, Exporters: exporter("no", no)}}, []string{`exporter "no" keeps them`}},
		"one that says nothing":          {[]hostgraph.Pipeline{{Name: "metrics", Processors: nil, Exporters: exporter("silent", silentOne)}}, []string{`exporter "silent" does not say whether it keeps metrics`}},
		"one that is another instance":   {[]hostgraph.Pipeline{{Name: "metrics", Processors: nil, Exporters: exporter("yes", &releasing{})}}, []string{`exporter "yes" does not say whether it keeps metrics`}},
		"a connector":                    {[]hostgraph.Pipeline{{Name: "metrics", Processors: nil, Exporters: []hostgraph.Node{a(component.KindConnector, "forward", yes)}}}, []string{`connector "forward" may hand metrics to any pipeline, or keep them`}},
		"a processor that keeps nothing": {[]hostgraph.Pipeline{{Name: "metrics", Processors: []hostgraph.Node{processor("p", known)}, Exporters: toYes}}, nil},
		"one that did not register":      {[]hostgraph.Pipeline{{Name: "metrics", Processors: []hostgraph.Node{processor("p", unknown)}, Exporters: toYes}}, []string{`processor "p" does not say whether it keeps metrics`}},
		"one without an address":         {[]hostgraph.Pipeline{{Name: "metrics", Processors: []hostgraph.Node{processor("p", nil)}, Exporters: toYes}}, []string{`processor "p" does not say whether it keeps metrics`}},
		"one that keeps them":            {[]hostgraph.Pipeline{{Name: "metrics", Processors: []hostgraph.Node{processor("p", keeper)}, Exporters: toYes}}, []string{`processor "p" keeps them`}},
		"a memory_limiter of who knows":  {[]hostgraph.Pipeline{{Name: "metrics", Processors: []hostgraph.Node{processor("memory_limiter", unknown)}, Exporters: toYes}}, []string{`processor "memory_limiter" does not say whether it keeps metrics`}},
		"two exporters":                  {[]hostgraph.Pipeline{{Name: "metrics", Processors: nil, Exporters: append(toYes, toYes...)}}, []string{`pipeline "metrics" has 2 exporters, which share metrics`}},
		"two pipelines":                  {[]hostgraph.Pipeline{{Name: "metrics", Processors: nil, Exporters: toYes}, {Name: "metrics/2", Processors: nil, Exporters: toYes}}, []string{"the receiver is in 2 pipelines, which share metrics"}},
		"several things, the nearest at": {[]hostgraph.Pipeline{{Name: "metrics", Processors: []hostgraph.Node{processor("a", unknown), processor("b", keeper)}, Exporters: exporter("no", no)}}, []string{`processor "a" does not say whether it keeps metrics`, `processor "b" keeps them`, `exporter "no" keeps them`}},
	} {
		var got []string
		for _, o := range judge(host, c.roads) {
			got = append(got, o.String())
		}
		require.Equal(t, c.want, got, name)
	}
}

// Where a processor borrows points, others must not remove any: it would put back what they have removed.
func TestWhoRemovesAndWhoBorrows(t *testing.T) {
	exporter := &releasing{}
	host := filteringHost{exportingHost{nopHost{}, map[component.ID]component.Component{component.MustNewID("yes"): exporter}}}
	node := func(kind component.Kind, name string, instance component.Component) hostgraph.Node {
		return hostgraph.Node{Kind: kind, ID: name, Type: name, Address: hostgraph.AddressOf(reflect.ValueOf(instance))}
	}
	here := packageOf(&filterConfig{})
	changing[here] = Changes{Removes: true}
	t.Cleanup(func() { delete(changing, here) })
	filter, words, other := node(component.KindProcessor, "filter", &quiet{}), &wordy{}, &releasing{}
	t.Cleanup(Register(words, words))
	t.Cleanup(Register(other, other))
	ask := func(processors ...hostgraph.Node) []Obstacle {
		return judge(host, []hostgraph.Pipeline{{Name: "metrics", Processors: processors, Exporters: []hostgraph.Node{node(component.KindExporter, "yes", exporter)}}})
	}
	may := []Obstacle{{What: `processor "filter"`, Why: "removes metrics", Changes: Changes{Removes: true}}}
	require.Equal(t, may, ask(filter))
	require.Equal(t, may, ask(node(component.KindProcessor, "p", other), filter))
	must := []Obstacle{{What: `processor "filter"`, Why: "removes metrics, beside a processor that borrows them"}}
	require.Equal(t, must, ask(node(component.KindProcessor, "p", words), filter))
	require.Equal(t, must, ask(filter, node(component.KindProcessor, "p", words)))
}

// filteringHost has a processor that is known to remove metrics, by the type of its configuration.
type filteringHost struct{ exportingHost }

func (filteringHost) GetFactory(_ component.Kind, of component.Type) component.Factory {
	if of.String() != "filter" {
		return nil
	}
	return filters{}
}

type filters struct{ component.Factory }

func (filters) CreateDefaultConfig() component.Config { return &filterConfig{} }

type filterConfig struct{}

// wordy has unwritten attributes of points written before it reads them, and settler unwritten points.
type (
	wordy   struct{ releasing }
	settler struct{ releasing }
)

func (*wordy) SettlesWords()   {}
func (*settler) SettlesParts() {}

// Points may stay unwritten if all readers have them written first: processors for attributes, and only the exporter
// for everything else.
func TestWhoSettlesWhat(t *testing.T) {
	settles, reads := &settler{}, &releasing{}
	host := exportingHost{nopHost{}, map[component.ID]component.Component{component.MustNewID("settles"): settles, component.MustNewID("reads"): reads}}
	node := func(kind component.Kind, name string, instance component.Component) hostgraph.Node {
		return hostgraph.Node{Kind: kind, ID: name, Type: name, Address: hostgraph.AddressOf(reflect.ValueOf(instance))}
	}
	words, other, unknown := &wordy{}, &releasing{}, &wordy{}
	t.Cleanup(Register(words, words))
	t.Cleanup(Register(other, other))
	toSettler := []hostgraph.Node{node(component.KindExporter, "settles", settles)}
	f := func(parts, words bool, exporters []hostgraph.Node, processors ...component.Component) {
		t.Helper()
		road := hostgraph.Pipeline{Name: "metrics", Exporters: exporters}
		for _, p := range processors {
			road.Processors = append(road.Processors, node(component.KindProcessor, "p", p))
		}
		require.Equal(t, parts, unread(host, []hostgraph.Pipeline{road}, false), "parts")
		require.Equal(t, words, unread(host, []hostgraph.Pipeline{road}, true), "words")
	}
	f(true, true, toSettler)
	f(false, true, toSettler, words)
	f(false, true, toSettler, words, words)
	f(false, false, toSettler, other)
	f(false, false, toSettler, words, other)
	f(false, false, toSettler, unknown)
	f(false, false, []hostgraph.Node{node(component.KindExporter, "reads", reads)}, words)
	f(false, false, append(toSettler, toSettler...), words)
}

func TestAHostThatShowsNothing(t *testing.T) {
	for _, host := range []component.Host{nil, nopHost{}, exportingHost{}, &exportingHost{}} {
		got := Ask(host, component.MustNewID("receiver"))
		require.Equal(t, []Obstacle{{What: "the host", Why: hostgraph.ErrUnknown.Error(), Silent: true}}, got)
	}
}

func TestWhoForgetsIsUnknown(t *testing.T) {
	r := &releasing{}
	n := hostgraph.Node{Kind: component.KindProcessor, ID: "p", Type: "p", Address: hostgraph.AddressOf(reflect.ValueOf(r))}
	forget := Register(r, r)
	_, stands := processorObstacle(nopHost{}, n)
	require.False(t, stands)
	forget()
	_, stands = processorObstacle(nopHost{}, n)
	require.True(t, stands)
	Register(releasingValue{}, r)() // something that is not a pointer cannot be found, and does no harm
}

type releasingValue struct {
	component.StartFunc
	component.ShutdownFunc
}

func TestPoolingForbids(t *testing.T) {
	require.Empty(t, gates())
	require.NoError(t, featuregate.GlobalRegistry().Set(pooling, true))
	t.Cleanup(func() { require.NoError(t, featuregate.GlobalRegistry().Set(pooling, false)) })
	got := Ask(nopHost{}, component.MustNewID("receiver"))
	require.Len(t, got, 2)
	require.Equal(t, "gate pdata.useProtoPooling", got[0].What)
	require.False(t, got[0].Silent)
}
