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
)

// releasing is a component that answers.
type releasing struct {
	component.StartFunc
	component.ShutdownFunc

	keeps error
}

func (r *releasing) ReleasesMetrics() error { return r.keeps }

// quiet is one that does not.
type quiet struct {
	component.StartFunc
	component.ShutdownFunc

	_ int // else all would have one address
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

// What the real graph makes of these is tested where the Collector's service is at hand, with the receiver.
func TestTheNearestObstacleComesFirst(t *testing.T) {
	yes, no, silentOne := &releasing{}, &releasing{keeps: errors.New("keeps them")}, &quiet{}
	host := exportingHost{nopHost{}, map[component.ID]component.Component{
		component.MustNewID("yes"): yes, component.MustNewID("no"): no, component.MustNewID("silent"): silentOne,
	}}
	a := func(kind component.Kind, name string, instance component.Component) node {
		n := node{kind: kind, id: name, kindOf: name}
		if instance != nil {
			n.address = addressOf(reflect.ValueOf(instance))
		}
		return n
	}
	exporter := func(name string, instance component.Component) []node {
		return []node{a(component.KindExporter, name, instance)}
	}
	processor := func(name string, instance component.Component) node {
		return a(component.KindProcessor, name, instance)
	}
	known, unknown, keeper := &releasing{}, &releasing{}, &quiet{}
	t.Cleanup(Register(known, known))
	t.Cleanup(Register(keeper, no)) // a wrapper, for which another answers
	toYes := exporter("yes", yes)
	for name, c := range map[string]struct {
		roads []road
		want  []string
	}{
		"an exporter that lets go":       {[]road{{"metrics", nil, toYes}}, nil},
		"one that keeps metrics":         {[]road{{"metrics", nil, exporter("no", no)}}, []string{`exporter "no" keeps them`}},
		"one that says nothing":          {[]road{{"metrics", nil, exporter("silent", silentOne)}}, []string{`exporter "silent" does not say whether it keeps metrics`}},
		"one that is another instance":   {[]road{{"metrics", nil, exporter("yes", &releasing{})}}, []string{`exporter "yes" does not say whether it keeps metrics`}},
		"a connector":                    {[]road{{"metrics", nil, []node{a(component.KindConnector, "forward", yes)}}}, []string{`connector "forward" may hand metrics to any pipeline, or keep them`}},
		"a processor that lets go":       {[]road{{"metrics", []node{processor("p", known)}, toYes}}, nil},
		"one that did not register":      {[]road{{"metrics", []node{processor("p", unknown)}, toYes}}, []string{`processor "p" does not say whether it keeps metrics`}},
		"one without an address":         {[]road{{"metrics", []node{processor("p", nil)}, toYes}}, []string{`processor "p" does not say whether it keeps metrics`}},
		"one that keeps them":            {[]road{{"metrics", []node{processor("p", keeper)}, toYes}}, []string{`processor "p" keeps them`}},
		"a memory_limiter of who knows":  {[]road{{"metrics", []node{processor("memory_limiter", unknown)}, toYes}}, []string{`processor "memory_limiter" does not say whether it keeps metrics`}},
		"two exporters":                  {[]road{{"metrics", nil, append(toYes, toYes...)}}, []string{`pipeline "metrics" has 2 exporters, which share metrics`}},
		"two pipelines":                  {[]road{{"metrics", nil, toYes}, {"metrics/2", nil, toYes}}, []string{"the receiver is in 2 pipelines, which share metrics"}},
		"several things, the nearest at": {[]road{{"metrics", []node{processor("a", unknown), processor("b", keeper)}, exporter("no", no)}}, []string{`processor "a" does not say whether it keeps metrics`, `processor "b" keeps them`, `exporter "no" keeps them`}},
	} {
		var got []string
		for _, o := range judge(host, c.roads) {
			got = append(got, o.String())
		}
		require.Equal(t, c.want, got, name)
	}
}

func TestAHostThatShowsNothing(t *testing.T) {
	for _, host := range []component.Host{nil, nopHost{}, exportingHost{}, &exportingHost{}} {
		got := Ask(host, component.MustNewID("receiver"))
		require.Equal(t, []Obstacle{{What: "the host", Why: errNoGraph.Error(), Silent: true}}, got)
	}
}

func TestWhoForgetsIsUnknown(t *testing.T) {
	r := &releasing{}
	n := node{kind: component.KindProcessor, id: "p", kindOf: "p", address: addressOf(reflect.ValueOf(r))}
	forget := Register(r, r)
	_, stands := processorObstacle(nopHost{}, n)
	require.False(t, stands)
	forget()
	_, stands = processorObstacle(nopHost{}, n)
	require.True(t, stands)
	Register(releasingValue{}, r)() // what is no pointer cannot be found, and does no harm
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
