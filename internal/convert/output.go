// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A table is a mapping that is written: keys in the order in which they were set.
type table struct{ node *yaml.Node }

//go:noinline
func newTable() table {
	return table{&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}}
}

// set adds a key. A value is a text, a whole number, a truth, a list of texts, a table or a node; texts are taken as they are.
func (t table) set(key string, value any) table {
	t.node.Content = append(t.node.Content, str(key), nodeOf(value))
	return t
}

// say puts a comment above the key that was set last.
func (t table) say(comment string) {
	t.node.Content[len(t.node.Content)-2].HeadComment = comment
}

func (t table) empty() bool { return len(t.node.Content) == 0 }

func (t table) has(key string) bool { return find(t.node, key) != nil }

//go:noinline
func str(value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	if strings.Contains(value, "\n") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func nodeOf(value any) *yaml.Node {
	switch v := value.(type) {
	case *yaml.Node:
		return v
	case table:
		return v.node
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	case int64:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v, 10)}
	case int:
		return nodeOf(int64(v))
	case string:
		return str(v)
	case []string:
		list := sequence()
		list.Style = yaml.FlowStyle
		for _, item := range v {
			list.Content = append(list.Content, str(item))
		}
		return list
	default:
		return str(fmt.Sprint(v))
	}
}

func sequence(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: items}
}

// An output is the configuration of a collector with one pipeline of metrics, or with one for each destination.
type output struct {
	receivers, processors, exporters, extensions table
	// from, through and to are the pipeline, uses the extensions.
	from, through, to, uses []string
	// branches are the pipelines in its place where exporters differ in what is before them.
	branches  []branch
	telemetry table
	// external are the labels that a receiver gives to all that it scrapes, nil for none.
	external *yaml.Node
	// discoveries are the mechanisms of service discovery in it, by the key of the first that has them.
	discoveries map[string]bool
}

func newOutput() *output {
	return &output{
		receivers: newTable(), processors: newTable(), exporters: newTable(), extensions: newTable(),
		telemetry: newTable(), discoveries: map[string]bool{},
	}
}

// id makes a component's ID of a type and of what it is called where it comes from, another than all in a table.
func id(in table, kind, name string) string {
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
		if !in.has(made) {
			return made
		}
	}
}

func (o *output) receive(kind string, settings table) {
	made := id(o.receivers, kind, "")
	o.receivers.set(made, settings)
	o.from = append(o.from, made)
}

func (o *output) process(kind string, settings table) {
	if settings.empty() {
		return
	}
	made := id(o.processors, kind, "")
	o.processors.set(made, settings)
	o.through = append(o.through, made)
}

// A branch is a pipeline to some of the exporters, which has a processor of its own after those of all, or none.
type branch struct {
	name        string
	settings    table
	through, to []string
}

// branch gives one of the exporters a processor of its own, shared with those whose settings are the same, or none where these say nothing.
func (o *output) branch(exporter int, kind string, settings table) {
	to := o.to[exporter]
	for i := range o.branches {
		if alike(o.branches[i].settings.node, settings.node) {
			o.branches[i].to = append(o.branches[i].to, to)
			return
		}
	}
	_, name, _ := strings.Cut(to, "/")
	b := branch{name: name, settings: settings, to: []string{to}}
	if !settings.empty() {
		made := id(o.processors, kind, name)
		o.processors.set(made, settings)
		b.through = []string{made}
	}
	o.branches = append(o.branches, b)
}

// export adds an exporter.
func (o *output) export(name string, settings table) {
	made := id(o.exporters, exporter, name)
	o.exporters.set(made, settings)
	o.to = append(o.to, made)
}

// extend adds an extension and returns its ID.
func (o *output) extend(kind, name string, settings table) string {
	made := id(o.extensions, kind, name)
	o.extensions.set(made, settings)
	o.uses = append(o.uses, made)
	return made
}

// protect puts in front of all what refuses data before memory runs out.
func (o *output) protect() {
	made := id(o.processors, "memory_limiter", "")
	settings := newTable().set("check_interval", "1s").set("limit_percentage", 80).set("spike_limit_percentage", 20)
	o.processors.node.Content = slices.Concat([]*yaml.Node{str(made), settings.node}, o.processors.node.Content)
	o.through = append([]string{made}, o.through...)
}

// write makes the file, with a first line that says what it comes from.
func (o *output) write(in *input, what string) ([]byte, error) {
	o.checkComponents(in)
	root := newTable()
	root.set("receivers", o.receivers)
	root.say("Made by `convert` from " + what + ".\n" + "What is not as it was is in the report that came with it.")
	root.set("processors", o.processors).set("exporters", o.exporters)
	if !o.extensions.empty() {
		root.set("extensions", o.extensions)
	}
	service := newTable()
	if len(o.uses) > 0 {
		service.set("extensions", o.uses)
	}
	pipelines := newTable()
	pipeline := func(id string, through, to []string) {
		pipelines.set(id, newTable().set("receivers", o.from).set("processors", through).set("exporters", to))
	}
	if len(o.branches) == 0 {
		pipeline("metrics", o.through, o.to)
	}
	for _, b := range o.branches {
		pipeline("metrics/"+b.name, slices.Concat(o.through, b.through), b.to)
	}
	service.set("pipelines", pipelines)
	if !o.telemetry.empty() {
		service.set("telemetry", o.telemetry)
	}
	root.set("service", service)
	return encode(root.node)
}

func encode(root *yaml.Node) ([]byte, error) {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("cannot write YAML: %w", err)
	}
	return text.Bytes(), nil
}
