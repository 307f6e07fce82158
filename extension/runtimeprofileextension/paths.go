// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"slices"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
)

// MetricsPaths returns in how many pipelines a receiver is, and how many exporters these have between them, so that the
// receiver can tell whether an error is of all that get its metrics, or of one and the others are well. Both are zero if
// that is not known: before the configuration is, and with a connector, behind which are more pipelines.
func (e *runtimeProfile) MetricsPaths(receiver component.ID) (pipelines, exporters int) {
	e.mu.Lock()
	conf := e.conf
	e.mu.Unlock()
	if conf == nil {
		return 0, 0
	}
	return metricsPaths(conf, receiver.String())
}

func metricsPaths(conf *confmap.Conf, receiver string) (pipelines, exporters int) {
	connectors := section(conf, "connectors")
	all, _ := section(conf, "service")["pipelines"].(map[string]any)
	for _, one := range all {
		p, _ := one.(map[string]any)
		if !slices.Contains(names(p["receivers"]), receiver) {
			continue
		}
		pipelines++
		for _, exporter := range names(p["exporters"]) {
			if _, ok := connectors[exporter]; ok {
				return 0, 0
			}
			exporters++
		}
	}
	return pipelines, exporters
}
