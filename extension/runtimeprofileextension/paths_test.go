// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
)

func TestMetricsPaths(t *testing.T) {
	one := func(exporters ...any) map[string]any {
		return map[string]any{"receivers": []any{"other", "scrape/a"}, "exporters": exporters}
	}
	for name, c := range map[string]struct {
		pipelines            map[string]any
		pipelined, exporters int
	}{
		"one way":                   {map[string]any{"metrics": one("a")}, 1, 1},
		"two exporters":             {map[string]any{"metrics": one("a", "b")}, 1, 2},
		"two pipelines":             {map[string]any{"metrics": one("a"), "metrics/2": one("a", "b")}, 2, 3},
		"another's pipeline":        {map[string]any{"metrics": one("a"), "metrics/2": map[string]any{"receivers": []any{"other"}, "exporters": []any{"b"}}}, 1, 1},
		"a connector":               {map[string]any{"metrics": one("forward")}, 0, 0},
		"a connector and exporters": {map[string]any{"metrics": one("a", "forward/2"), "metrics/2": one("b")}, 0, 0},
		"no pipeline":               {map[string]any{}, 0, 0},
	} {
		conf := confmap.NewFromStringMap(map[string]any{
			"connectors": map[string]any{"forward": nil, "forward/2": nil},
			"service":    map[string]any{"pipelines": c.pipelines},
		})
		e := &runtimeProfile{conf: conf}
		pipelines, exporters := e.MetricsPaths(component.MustNewIDWithName("scrape", "a"))
		require.Equal(t, [2]int{c.pipelined, c.exporters}, [2]int{pipelines, exporters}, name)
		pipelines, exporters = e.MetricsPaths(component.MustNewID("scrape"))
		require.Equal(t, [2]int{}, [2]int{pipelines, exporters}, "another receiver: %s", name)
	}
	pipelines, exporters := (&runtimeProfile{}).MetricsPaths(component.MustNewID("scrape"))
	require.Equal(t, [2]int{}, [2]int{pipelines, exporters}, "before it has started")
}
