// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/exporter/prometheusremotewriteexporter"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter"
	"github.com/godwit-otel/godwit/extension/consoleextension"
	"github.com/godwit-otel/godwit/extension/pulseextension"
	"github.com/godwit-otel/godwit/extension/runtimeprofileextension"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
	"github.com/godwit-otel/godwit/receiver/prometheusreceiver"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver"
)

// A described component is one of our components.
type described struct {
	// section is its section of a configuration, dir its directory in the repository.
	section, dir string
	// types are its type names; the first one is preferred.
	types   []string
	factory component.Factory
}

// title is the component's name in prose.
func (d *described) title() string { return d.types[0] + " " + d.section[:len(d.section)-1] }

// anchor returns the anchor of its heading.
func (d *described) anchor() string { return anchor(d.title()) }

// all returns the components whose keys are described, in the order in which data pass through them.
func all() []described {
	list := []described{
		{section: receivers, dir: "receiver/fastprometheusreceiver", factory: fastprometheusreceiver.NewFactory()},
		{section: receivers, dir: "receiver/prometheusreceiver", factory: prometheusreceiver.NewFactory()},
		{section: receivers, dir: "receiver/remotewritereceiver", factory: remotewritereceiver.NewFactory()},
		{section: receivers, dir: "receiver/otlpstreamreceiver", factory: otlpstreamreceiver.NewFactory()},
		{section: processors, dir: "processor/cardinalityprocessor", factory: cardinalityprocessor.NewFactory()},
		{section: exporters, dir: "exporter/remotewriteexporter", factory: remotewriteexporter.NewFactory()},
		{section: exporters, dir: "exporter/prometheusremotewriteexporter", factory: prometheusremotewriteexporter.NewFactory()},
		{section: exporters, dir: "exporter/otlpstreamexporter", factory: otlpstreamexporter.NewFactory()},
		{section: extensions, dir: "extension/consoleextension", factory: consoleextension.NewFactory()},
		{section: extensions, dir: "extension/pulseextension", factory: pulseextension.NewFactory()},
		{section: extensions, dir: "extension/runtimeprofileextension", factory: runtimeprofileextension.NewFactory()},
	}
	for i := range list {
		d := &list[i]
		d.types = []string{d.factory.Type().String()}
		if aliased, ok := d.factory.(interface{ DeprecatedAlias() component.Type }); ok && aliased.DeprecatedAlias().String() != "" {
			d.types = append(d.types, aliased.DeprecatedAlias().String())
		}
	}
	return list
}

// The sections of a configuration with our components.
const (
	receivers  = "receivers"
	processors = "processors"
	exporters  = "exporters"
	extensions = "extensions"
)
