// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pipeline"
)

// returning is an exporter that says of itself whether it is done with metrics when it returns.
type returning struct {
	component.StartFunc
	component.ShutdownFunc

	is bool
}

func (r returning) ReturnsMetrics() bool { return r.is }

// silent is an exporter that says nothing.
type silent struct {
	component.StartFunc
	component.ShutdownFunc
}

type exportingHost struct{ component.Host }

func (exportingHost) GetExporters() map[pipeline.Signal]map[component.ID]component.Component {
	return map[pipeline.Signal]map[component.ID]component.Component{pipeline.SignalMetrics: {
		component.MustNewID("yes"):                returning{is: true},
		component.MustNewIDWithName("yes", "two"): returning{is: true},
		component.MustNewID("no"):                 returning{},
		component.MustNewID("silent"):             silent{},
		component.MustNewIDWithName("nop", "x"):   silent{},
	}}
}

func TestReturnsMetrics(t *testing.T) {
	type pipelines map[string]any
	one := func(processors, exporters []any) pipelines {
		return pipelines{"metrics": map[string]any{
			"receivers": []any{"other", "scrape/a"}, "processors": processors, "exporters": exporters,
		}}
	}
	twice := one(nil, []any{"yes"})
	twice["metrics/2"] = twice["metrics"]
	for name, c := range map[string]struct {
		pipelines pipelines
		want      bool
	}{
		"an exporter that returns them":         {one(nil, []any{"yes"}), true},
		"a memory_limiter between":              {one([]any{"memory_limiter", "memory_limiter/b"}, []any{"yes/two"}), true},
		"an exporter that keeps them":           {one(nil, []any{"no"}), false},
		"an exporter that says nothing":         {one(nil, []any{"silent"}), false},
		"an exporter that does nothing":         {one(nil, []any{"nop/x"}), true},
		"a connector":                           {one(nil, []any{"forward"}), false},
		"a processor that may keep them":        {one([]any{"memory_limiter", "batch"}, []any{"yes"}), false},
		"two exporters, for which it is shared": {one(nil, []any{"yes", "yes/two"}), false},
		"two pipelines":                         {twice, false},
		"no pipeline":                           {pipelines{}, false},
	} {
		conf := confmap.NewFromStringMap(map[string]any{"service": map[string]any{"pipelines": map[string]any(c.pipelines)}})
		e := &runtimeProfile{conf: conf, host: exportingHost{componenttest.NewNopHost()}}
		require.Equal(t, c.want, e.ReturnsMetrics(component.MustNewIDWithName("scrape", "a")), name)
		require.False(t, e.ReturnsMetrics(component.MustNewID("scrape")), "another receiver: %s", name)

		e.host = componenttest.NewNopHost()
		require.False(t, e.ReturnsMetrics(component.MustNewIDWithName("scrape", "a")), "a host that shows no exporters: %s", name)
	}
	require.False(t, (&runtimeProfile{}).ReturnsMetrics(component.MustNewID("scrape")), "before it has started")
}
