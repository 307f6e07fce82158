// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import "go.opentelemetry.io/collector/component"

// Kinds of components, as they appear in the names of nodes.
const (
	Receiver  = "receiver"
	Processor = "processor"
	Exporter  = "exporter"
	Connector = "connector"
	Extension = "extension"
)

var kinds = map[string]component.Kind{
	Receiver: component.KindReceiver, Processor: component.KindProcessor, Exporter: component.KindExporter,
	Connector: component.KindConnector, Extension: component.KindExtension,
}

// Kind returns the kind with a name.
func Kind(name string) component.Kind { return kinds[name] }

// KindName returns the name of a kind.
func KindName(kind component.Kind) string {
	switch kind {
	case component.KindReceiver:
		return Receiver
	case component.KindProcessor:
		return Processor
	case component.KindExporter:
		return Exporter
	case component.KindConnector:
		return Connector
	case component.KindExtension:
		return Extension
	}
	return "component"
}
