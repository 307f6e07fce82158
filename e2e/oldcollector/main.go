// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Command oldcollector is a Collector of 2021, built from the Collector's own released modules. It speaks the standard
// OTLP of that time and knows no compression but gzip. Tests put it at either end of a link.
package main

import (
	"log"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service"
)

func main() {
	receivers, err := component.MakeReceiverFactoryMap(otlpreceiver.NewFactory())
	if err != nil {
		log.Fatal(err)
	}
	exporters, err := component.MakeExporterFactoryMap(otlpexporter.NewFactory())
	if err != nil {
		log.Fatal(err)
	}
	c, err := service.New(service.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "oldcollector", Version: "0.30.0"},
		Factories: component.Factories{Receivers: receivers, Exporters: exporters},
	})
	if err == nil {
		err = c.Run()
	}
	if err != nil {
		log.Fatal(err)
	}
}
