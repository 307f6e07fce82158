// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package output makes the configuration of a collector: components, and the pipelines that they are in.
package output

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/components"
	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// exporter is the type of the exporters that are written.
const exporter = "remotewrite"

// An Output is the configuration of a collector with one pipeline of metrics, or with one for each destination.
type Output struct {
	Receivers, processors, Exporters, extensions document.Table
	// From, through and To are the pipeline, uses the extensions.
	From, through, To, uses []string
	// branches replace the pipeline if exporters need different processors.
	branches  []branch
	Telemetry document.Table
	// External are the labels that a receiver adds to everything it scrapes, nil for none.
	External *yaml.Node
	// Discoveries are the mechanisms of service discovery in the configuration.
	Discoveries map[string]bool
}

// New returns a configuration without components.
func New() *Output {
	return &Output{
		Receivers: document.NewTable(), processors: document.NewTable(), Exporters: document.NewTable(), extensions: document.NewTable(),
		Telemetry: document.NewTable(), Discoveries: map[string]bool{},
	}
}

// ID returns a component's ID with a type and a name, different from all in a table.
func ID(in document.Table, kind, name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '-'
	}, name)
	base := kind
	if clean = strings.Trim(clean, "-"); clean != "" {
		base += "/" + clean
	}
	for n := 1; ; n++ {
		made := base
		switch {
		case n > 1 && base == kind:
			made += "/" + strconv.Itoa(n)
		case n > 1:
			made += "-" + strconv.Itoa(n)
		}
		if !in.Has(made) {
			return made
		}
	}
}

// Receive adds a receiver.
func (o *Output) Receive(kind string, settings document.Table) {
	made := ID(o.Receivers, kind, "")
	o.Receivers.Set(made, settings)
	o.From = append(o.From, made)
}

// Process adds a processor, if it has settings.
func (o *Output) Process(kind string, settings document.Table) {
	if settings.Empty() {
		return
	}
	made := ID(o.processors, kind, "")
	o.processors.Set(made, settings)
	o.through = append(o.through, made)
}

// A branch is a pipeline to some of the exporters. It has at most one processor of its own, after those of all
// branches.
type branch struct {
	name        string
	settings    document.Table
	through, to []string
}

// Branch gives an exporter a processor of its own. Exporters with the same settings share it; empty settings mean none.
func (o *Output) Branch(exporter int, kind string, settings document.Table) {
	to := o.To[exporter]
	for i := range o.branches {
		if document.Alike(o.branches[i].settings.Node, settings.Node) {
			o.branches[i].to = append(o.branches[i].to, to)
			return
		}
	}
	_, name, _ := strings.Cut(to, "/")
	b := branch{name: name, settings: settings, to: []string{to}}
	if !settings.Empty() {
		made := ID(o.processors, kind, name)
		o.processors.Set(made, settings)
		b.through = []string{made}
	}
	o.branches = append(o.branches, b)
}

// Export adds an exporter.
func (o *Output) Export(name string, settings document.Table) {
	made := ID(o.Exporters, exporter, name)
	o.Exporters.Set(made, settings)
	o.To = append(o.To, made)
}

// Extend adds an extension and returns its ID.
func (o *Output) Extend(kind, name string, settings document.Table) string {
	made := ID(o.extensions, kind, name)
	o.extensions.Set(made, settings)
	o.uses = append(o.uses, made)
	return made
}

// protect puts the processor that refuses data before memory runs out in front of the pipeline.
func (o *Output) protect() {
	made := ID(o.processors, "memory_limiter", "")
	settings := document.NewTable().Set("check_interval", "1s").Set("limit_percentage", 80).Set("spike_limit_percentage", 20)
	o.processors.Node.Content = slices.Concat([]*yaml.Node{document.StringNode(made), settings.Node}, o.processors.Node.Content)
	o.through = append([]string{made}, o.through...)
}

// Finish adds the components of every result.
func (o *Output) Finish() {
	o.protect()
	o.Extend("console", "", document.NewTable())
}

// Write returns the configuration, with a first line that names its source.
func (o *Output) Write(in *input.Input, what string) ([]byte, error) {
	o.checkComponents(in)
	root := document.NewTable()
	root.Set("receivers", o.Receivers)
	root.Say("Made by `convert` from " + what + ".\n" + "What is not as it was is in the report that came with it.")
	root.Set("processors", o.processors).Set("exporters", o.Exporters)
	if !o.extensions.Empty() {
		root.Set("extensions", o.extensions)
	}
	service := document.NewTable()
	if len(o.uses) > 0 {
		service.Set("extensions", o.uses)
	}
	pipelines := document.NewTable()
	pipeline := func(id string, through, to []string) {
		pipelines.Set(id, document.NewTable().Set("receivers", o.From).Set("processors", through).Set("exporters", to))
	}
	if len(o.branches) == 0 {
		pipeline("metrics", o.through, o.To)
	}
	for _, b := range o.branches {
		pipeline("metrics/"+b.name, slices.Concat(o.through, b.through), b.to)
	}
	service.Set("pipelines", pipelines)
	if !o.Telemetry.Empty() {
		service.Set("telemetry", o.Telemetry)
	}
	root.Set("service", service)
	return document.Encode(root.Node)
}

// checkComponents reports the components that the distribution to run the result does not have.
func (o *Output) checkComponents(in *input.Input) {
	for kind, t := range map[string]document.Table{"receivers": o.Receivers, "processors": o.processors, "exporters": o.Exporters, "extensions": o.extensions} {
		components.Check(in, kind, t.Node, "")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Discoveries)) {
		if text := components.Missing(in.Distribution, components.Discovery, name); text != "" {
			in.Report.Add(report.Finding{Kind: report.Needs, Path: name + promconfig.Discoveries, Text: text})
		}
	}
}
