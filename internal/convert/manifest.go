// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Manifests of Kubernetes are met with a configuration in them: that of an OpenTelemetryCollector, a file of a ConfigMap, or flags of a
// container. It is taken out so that its lines keep their numbers.

// operated says of kinds whose configuration an operator makes where it is.
var operated = map[string]string{
	"Prometheus":      reloadedFile,
	"PrometheusAgent": reloadedFile,
	"VMAgent":         "its operator makes the configuration of it: take the pod's manifest, and its scrape configuration out of the secret",
}

const reloadedFile = "its operator makes the configuration of it: take /etc/prometheus/config_out/prometheus.env.yaml out of a pod"

// wrapped is a configuration in a manifest, and whose it is.
type wrapped struct {
	text []byte
	of   string
	// flags tells that it is a container's flags; files are those of ConfigMaps beside it, which these may name.
	flags bool
	files map[string][]byte
	// allocator is what the operator runs beside a collector, and gives its receivers' jobs to.
	allocator *yaml.Node
}

// unwrap takes the configuration out of a manifest of Kubernetes. It returns nil for what is none.
func unwrap(text []byte) (*wrapped, error) {
	if !bytes.Contains(text, []byte("apiVersion")) {
		return nil, nil
	}
	var found, flags []wrapped
	files := map[string][]byte{}
	hint := ""
	for _, document := range documents(text) {
		root, err := parse(document)
		if err != nil {
			return nil, nil //nolint:nilerr // whoever reads it says what is wrong with it
		}
		objects := []*yaml.Node{root}
		if items := find(root, "items"); items != nil {
			objects = contents(items)
		}
		for _, object := range objects {
			kind := find(object, "kind")
			if find(object, "apiVersion") == nil || kind == nil {
				continue
			}
			for _, w := range inside(document, object, files) {
				if w.flags {
					flags = append(flags, w)
				} else {
					found = append(found, w)
				}
			}
			if text := operated[kind.Value]; text != "" {
				hint = text
			}
		}
	}
	if len(flags) > 0 {
		found = flags
	}
	switch {
	case len(found) == 1:
		found[0].files = files
		return &found[0], nil
	case len(found) > 1:
		var names []string
		for _, w := range found {
			names = append(names, w.of)
		}
		return nil, fmt.Errorf("there are several configurations in it: %s: give one as a file", strings.Join(names, ", "))
	case hint != "":
		return nil, errors.New(hint)
	}
	return nil, nil
}

// documents splits a stream of YAML. Each has as many empty lines before it as there are lines before it in the stream.
func documents(text []byte) [][]byte {
	var all [][]byte
	var current []byte
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if bytes.HasPrefix(line, []byte("---")) {
			all = append(all, current)
			current = bytes.Repeat([]byte("\n"), number)
			continue
		}
		current = append(current, line...)
	}
	return append(all, current)
}

// inside finds what is in an object of a document, and adds the files of a ConfigMap to others.
func inside(document []byte, object *yaml.Node, all map[string][]byte) []wrapped {
	kind, name := find(object, "kind").Value, ""
	if n := find(find(object, "metadata"), "name"); n != nil {
		name = n.Value
	}
	of := strings.TrimSpace(kind + " " + name)
	if len(containerFlags(object)) > 0 {
		return []wrapped{{text: document, of: of, flags: true}}
	}
	if kind == "OpenTelemetryCollector" {
		spec := find(object, "spec")
		config, allocator := find(spec, "config"), find(spec, "targetAllocator")
		if enabled := find(allocator, "enabled"); enabled == nil || !truth(enabled.Value) {
			allocator = nil
		}
		if !isNull(config) {
			return []wrapped{{text: cut(document, config), of: of, allocator: allocator}}
		}
		return nil
	}
	var found []wrapped
	for _, section := range []string{"data", "stringData"} {
		files := find(object, section)
		for i := 0; files != nil && i+1 < len(files.Content); i += 2 {
			name, text := files.Content[i].Value, cut(document, files.Content[i+1])
			all[name] = text
			switch Detect(text) {
			case Prometheus, VMAgent, Collector:
				found = append(found, wrapped{text: text, of: of + ", " + name})
			}
		}
	}
	return found
}

// cut is the text of a value that is a configuration, in the lines in which it is.
func cut(document []byte, n *yaml.Node) []byte {
	from := n.Line
	switch {
	case n.Kind == yaml.ScalarNode && n.Style&yaml.LiteralStyle == 0:
		return []byte(n.Value)
	case n.Kind == yaml.ScalarNode:
		from++
	case n.Style&yaml.FlowStyle != 0:
		text, err := encode(n)
		if err != nil {
			return nil
		}
		return text
	}
	var made []byte
	number, indent := 0, -1
	for line := range bytes.Lines(document) {
		number++
		rest := bytes.TrimLeft(line, " ")
		depth := len(line) - len(rest)
		blank := len(bytes.TrimSpace(rest)) == 0 || n.Kind == yaml.MappingNode && rest[0] == '#'
		switch {
		case number < from, blank && depth < indent:
			made = append(made, '\n')
		case blank:
			made = append(made, line...)
		case indent < 0:
			indent = depth
			made = append(made, line...)
		case depth < indent:
			return made
		default:
			made = append(made, line...)
		}
	}
	return made
}

// isManifest tells a manifest by its top-level keys alone, as cheaply as IsPrometheus.
func isManifest(text []byte) bool {
	return bytes.HasPrefix(text, []byte("apiVersion:")) || bytes.Contains(text, []byte("\napiVersion:"))
}
