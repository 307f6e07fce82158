// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Manifests of Kubernetes are met with a configuration in them: that of an OpenTelemetryCollector, a file of a ConfigMap, or flags of a
// container. It is taken out so that its lines keep their numbers.

// operated says of kinds without a configuration in them what becomes of them.
var operated = map[string]string{
	"Prometheus":      reloadedFile,
	"PrometheusAgent": reloadedFile,
	"VMAgent":         "its operator makes the configuration of it: take the pod's manifest, and its scrape configuration out of the secret",
	"HelmRelease":     chartValues,
	"HelmChart":       chartValues,
	"Application":     chartValues,
	"ServiceMonitor":  monitors,
	"PodMonitor":      monitors,
	"Probe":           monitors,
	"ScrapeConfig":    monitors,
	"VMServiceScrape": vmMonitors,
	"VMPodScrape":     vmMonitors,
	"VMNodeScrape":    vmMonitors,
	"VMStaticScrape":  vmMonitors,
	"VMProbe":         vmMonitors,
	"VMScrapeConfig":  vmMonitors,
	"TargetAllocator": "it goes on running, and agents ask it (examples/kubernetes-target-allocator.yaml)",
	"PrometheusRule":  noRules,
	"VMRule":          noRules,
}

const (
	reloadedFile = "its operator makes the configuration of it: take /etc/prometheus/config_out/prometheus.env.yaml out of a pod"
	chartValues  = "it has values of a Helm chart: convert the manifest that `helm template` makes with them and that has the configuration, or flags of vmagent, in it"
	monitors     = "it stays as it is: the OpenTelemetry operator's target allocator makes jobs of it, which agents ask for (docs/kubernetes.md)"
	vmMonitors   = "VictoriaMetrics' operator makes jobs of it: take them out of the secret of its VMAgent, or write a ServiceMonitor or PodMonitor, which the OpenTelemetry operator's target allocator reads"
)

// wrapped is a configuration in a manifest, and whose it is.
type wrapped struct {
	text []byte
	of   string
	// names are what it is chosen by.
	names []string
	// file is its name in a ConfigMap.
	file string
	// flags tells that it is a container's flags; files are those of ConfigMaps beside it, which these may name.
	flags bool
	files map[string]manifestFile
	// spec is what an operator reads beside the configuration, nil for others.
	spec *yaml.Node
	// beside are other configurations in the manifest, and unread is why a part of it is not read.
	beside []wrapped
	unread error
}

// manifestFile is a file of a ConfigMap or a Secret; others tells that there is another of its name.
type manifestFile struct {
	text   []byte
	of     string
	others bool
}

// unwrap takes the configuration out of a manifest of Kubernetes, that of a name where there are several. It returns nil for what is none.
func unwrap(text []byte, name string) (*wrapped, error) {
	if !bytes.Contains(text, []byte("apiVersion")) {
		return nil, nil
	}
	var found []wrapped
	files := map[string]manifestFile{}
	hint := ""
	var broken error
	for _, document := range documents(text) {
		root, err := parseLoosely(document)
		if err != nil {
			broken = cmp.Or(broken, atLine(document, err))
			continue
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
			found = append(found, inside(document, object, object == root, files)...)
			hint = cmp.Or(hint, operated[kind.Value])
		}
	}
	switch chosen, err := choose(found, name); {
	case err != nil:
		return nil, err
	case chosen != nil:
		chosen.files, chosen.unread = files, broken
		return chosen, nil
	case broken != nil && bytes.Contains(text, []byte("{{")):
		return nil, errors.New(string("it is " + unfilled))
	case broken != nil:
		return nil, broken
	case hint != "":
		return nil, errors.New(hint)
	}
	return nil, nil
}

// choose takes the configuration that a name means, or the only one. Flags may name files beside them, so they come before these.
func choose(found []wrapped, name string) (*wrapped, error) {
	hasFlags := slices.ContainsFunc(found, func(w wrapped) bool { return w.flags })
	var candidates []wrapped
	for _, w := range found {
		belongs := hasFlags && w.file != "" && Detect(w.text) != Collector // to the flags
		if name == "" && !belongs || name != "" && slices.Contains(w.names, name) {
			candidates = append(candidates, w)
		}
	}
	switch {
	case len(found) == 0:
		return nil, nil
	case len(candidates) == 1:
		chosen := &candidates[0]
		for _, w := range found {
			if w.of != chosen.of {
				chosen.beside = append(chosen.beside, w)
			}
		}
		return chosen, nil
	case len(candidates) == 0:
		return nil, fmt.Errorf("there is no configuration %s in it, but %s", name, listed(found))
	}
	return nil, fmt.Errorf("there are several configurations in it: choose one by `--pick`: %s", listed(candidates))
}

// listed says how each of several configurations is chosen.
func listed(all []wrapped) string {
	var names []string
	for _, w := range all {
		names = append(names, strconv.Quote(w.of))
	}
	return strings.Join(names, ", ")
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

// inside finds what is in an object of a document, and adds the files of a ConfigMap or a Secret to others.
func inside(document []byte, object *yaml.Node, alone bool, all map[string]manifestFile) []wrapped {
	kind, name := find(object, "kind").Value, textOf(find(object, "metadata"), "name")
	w := wrapped{of: strings.TrimSpace(kind + " " + name), names: []string{name}}
	if namespace := textOf(find(object, "metadata"), "namespace"); namespace != "" {
		w.of = kind + " " + namespace + "/" + name
		w.names = append(w.names, namespace+"/"+name, kind+" "+name)
	}
	w.names = append(w.names, w.of)
	if len(containerFlags(object)) > 0 {
		w.flags = true
		if w.text = document; !alone {
			w.text = cut(document, object)
		}
		return []wrapped{w}
	}
	if kind == "OpenTelemetryCollector" {
		w.spec = find(object, "spec")
		if config := find(w.spec, "config"); !isNull(config) {
			w.text = cut(document, config)
			return []wrapped{w}
		}
		return nil
	}
	var found []wrapped
	for _, section := range []string{"data", "stringData", "binaryData"} {
		files := find(object, section)
		for i := 0; files != nil && i+1 < len(files.Content); i += 2 {
			name, text := files.Content[i].Value, cut(document, files.Content[i+1])
			if kind == "Secret" && section == "data" || section == "binaryData" {
				if plain, ok := secret(files.Content[i+1].Value); ok {
					text = plain
				}
			}
			already, others := all[name]
			all[name] = manifestFile{text, w.of, others && !bytes.Equal(already.text, text)}
			switch Detect(text) {
			case Prometheus, VMAgent, Collector:
				of := w.of + ", " + name
				found = append(found, wrapped{text: text, of: of, file: name, names: append(slices.Clone(w.names), name, of)})
			}
		}
	}
	return found
}

// textOf is a text under a key, "" where there is none.
func textOf(n *yaml.Node, key string) string {
	if value := find(n, key); value != nil {
		return value.Value
	}
	return ""
}

// cut is the text of a value that is a configuration, in the lines in which it is. Where these are not all that it says, as with aliases of what is
// outside of it, it is the value itself.
func cut(document []byte, n *yaml.Node) []byte {
	if n.Kind == yaml.ScalarNode && n.Style&yaml.LiteralStyle == 0 {
		return []byte(n.Value)
	}
	text := cutLines(document, n)
	if n.Kind == yaml.ScalarNode {
		if !slices.EqualFunc(bytes.Fields(text), bytes.Fields([]byte(n.Value)), bytes.Equal) {
			return []byte(n.Value)
		}
		return text
	}
	if n.Style&yaml.FlowStyle == 0 {
		if root, err := parseLoosely(text); err == nil && root != nil && sameValues(root, n) {
			return text
		}
	}
	text, err := encode(n)
	if err != nil {
		return nil
	}
	return text
}

// sameValues tells whether two trees say the same, whatever their comments.
func sameValues(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.Tag == b.Tag && a.Value == b.Value && slices.EqualFunc(a.Content, b.Content, sameValues)
}

// cutLines are the lines of a value in a block, and as many empty ones before them as there are before it.
func cutLines(document []byte, n *yaml.Node) []byte {
	from := n.Line
	if n.Kind == yaml.ScalarNode {
		from++
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
