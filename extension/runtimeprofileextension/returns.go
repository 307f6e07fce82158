// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pipeline"
)

// exporters is what a host that shows its exporters implements.
type exporters interface {
	GetExporters() map[pipeline.Signal]map[component.ID]component.Component
}

// returner is an exporter that may be done with metrics when it returns from them.
type returner interface{ ReturnsMetrics() bool }

// nopType is an exporter that does nothing.
var nopType = component.MustNewType("nop")

// ReturnsMetrics tells whether everything behind a receiver is done with its metrics when it returns, so that the
// receiver may use their memory again. Receivers ask when they start. Only what can be proven is answered with yes:
// one pipeline, of one exporter that says so of itself, with nothing between but memory_limiter, which keeps and
// changes nothing. (With more than one exporter the Collector would mark the metrics read-only.)
func (e *runtimeProfile) ReturnsMetrics(receiver component.ID) bool {
	e.mu.Lock()
	conf, host := e.conf, e.host
	e.mu.Unlock()
	exposed, ok := host.(exporters)
	if conf == nil || !ok {
		return false
	}
	behind := behind(conf, receiver.String())
	if len(behind) != 1 || len(behind[0].exporters) != 1 {
		return false
	}
	for _, processor := range behind[0].processors {
		if kind, _, _ := strings.Cut(processor, "/"); kind != limiterType {
			return false
		}
	}
	for id, exporter := range exposed.GetExporters()[pipeline.SignalMetrics] {
		if id.String() == behind[0].exporters[0] {
			r, ok := exporter.(returner)
			return id.Type() == nopType || ok && r.ReturnsMetrics()
		}
	}
	return false // a connector, which may keep what it likes
}

// road is what metrics of one pipeline go through.
type road struct{ processors, exporters []string }

// behind lists the roads of the pipelines that have a receiver.
func behind(conf *confmap.Conf, receiver string) []road {
	var roads []road
	pipelines, _ := section(conf, "service")["pipelines"].(map[string]any)
	for _, p := range pipelines {
		p, _ := p.(map[string]any)
		if slices.Contains(names(p["receivers"]), receiver) {
			roads = append(roads, road{names(p["processors"]), names(p["exporters"])})
		}
	}
	return roads
}
