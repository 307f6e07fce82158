// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package manifest finds configurations in Kubernetes manifests: that of an OpenTelemetryCollector, a file of a ConfigMap, or flags of a
// container. Extracted lines keep their numbers.
package manifest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/detect"
	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/report"
	"github.com/godwit-otel/godwit/internal/convert/vmagent"
)

// operated has advice for kinds of objects that do not contain a configuration.
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
	"PrometheusRule":  report.NoRules,
	"VMRule":          report.NoRules,
}

const (
	reloadedFile = "its operator makes the configuration of it: take /etc/prometheus/config_out/prometheus.env.yaml out of a pod"
	chartValues  = "it has values of a Helm chart: convert the manifest that `helm template` makes with them and that has the configuration, or flags of vmagent, in it"
	monitors     = "it stays as it is: the OpenTelemetry operator's target allocator makes jobs of it, which agents ask for (docs/kubernetes.md)"
	vmMonitors   = "VictoriaMetrics' operator makes jobs of it: take them out of the secret of its VMAgent, or write a ServiceMonitor or PodMonitor, which the OpenTelemetry operator's target allocator reads"
)

// Configuration is a configuration in a manifest, with the object that contains it.
type Configuration struct {
	Text   []byte
	Object string
	// names are the names that select it.
	names []string
	// File is its file name in a ConfigMap.
	File string
	// flags reports whether it consists of a container's flags. Files are the files of ConfigMaps and Secrets beside
	// it, which the flags may name.
	flags bool
	Files map[string]input.PackedFile
	// Spec is what an operator reads besides the configuration, nil if there is none.
	Spec *yaml.Node
	// arguments are the arguments of containers that may read it.
	arguments []argument
	// Beside are the other configurations in the manifest. Unread is the reason why a part of the manifest could not be
	// read.
	Beside []Configuration
	Unread error
}

// Name returns the name of the object.
func (c *Configuration) Name() string { return c.names[0] }

// Unwrap extracts the configuration from a Kubernetes manifest, the one with the name if there are several. It returns
// nil if text is not a manifest.
func Unwrap(text []byte, name string) (*Configuration, error) {
	if !bytes.Contains(text, []byte("apiVersion")) {
		return choose(inCompose(text), name)
	}
	var found []Configuration
	var arguments []argument
	files := map[string]input.PackedFile{}
	hint := ""
	var broken error
	for part := range document.Documents(text) {
		root, err := document.ParseLoosely(part)
		if err != nil {
			if broken == nil { // finding the line takes a while
				broken = document.AtLine(part, err)
			}
			continue
		}
		objects := []*yaml.Node{root}
		if items := document.Find(root, "items"); items != nil {
			objects = document.Contents(items)
		}
		for _, object := range objects {
			kind := document.Find(object, "kind")
			if document.Find(object, "apiVersion") == nil || kind == nil {
				continue
			}
			found = append(found, inside(part, object, object == root, files)...)
			arguments = append(arguments, startArguments(object)...)
			hint = cmp.Or(hint, operated[kind.Value])
		}
	}
	switch chosen, err := choose(found, name); {
	case err != nil:
		return nil, err
	case chosen != nil:
		if chosen.Files, chosen.Unread = files, broken; !chosen.flags && chosen.Spec == nil {
			chosen.arguments = arguments
		}
		return chosen, nil
	case broken != nil && bytes.Contains(text, []byte("{{")):
		return nil, errors.New(string("it is " + detect.Unfilled))
	case broken != nil:
		return nil, broken
	case hint != "":
		return nil, errors.New(hint)
	}
	return nil, nil
}

// choose returns the configuration with the name, or the only one. Flags may name files beside them, so they take
// precedence over these.
func choose(found []Configuration, name string) (*Configuration, error) {
	hasFlags := slices.ContainsFunc(found, func(w Configuration) bool { return w.flags })
	var candidates []Configuration
	for _, w := range found {
		belongs := hasFlags && w.File != "" && detect.File(w.Text) != detect.Collector // to the flags
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
			if w.Object != chosen.Object {
				chosen.Beside = append(chosen.Beside, w)
			}
		}
		return chosen, nil
	case len(candidates) == 0:
		return nil, fmt.Errorf("there is no configuration %s in it, but %s", name, listed(found))
	}
	return nil, fmt.Errorf("there are several configurations in it: choose one by `--pick`: %s", listed(candidates))
}

// listed returns the names that select each of several configurations.
func listed(all []Configuration) string {
	var names []string
	for _, w := range all {
		names = append(names, strconv.Quote(w.Object))
	}
	return strings.Join(names, ", ")
}

// inside finds the configurations in an object, and adds the files of a ConfigMap or a Secret to all.
func inside(part []byte, object *yaml.Node, alone bool, all map[string]input.PackedFile) []Configuration {
	kind, name := document.Find(object, "kind").Value, document.TextOf(document.Find(object, "metadata"), "name")
	w := Configuration{Object: strings.TrimSpace(kind + " " + name), names: []string{name}}
	if namespace := document.TextOf(document.Find(object, "metadata"), "namespace"); namespace != "" {
		w.Object = kind + " " + namespace + "/" + name
		w.names = append(w.names, namespace+"/"+name, kind+" "+name)
	}
	w.names = append(w.names, w.Object)
	if len(vmagent.ContainerFlags(object)) > 0 {
		w.flags = true
		if w.Text = part; !alone {
			w.Text = cut(part, object)
		}
		return []Configuration{w}
	}
	if kind == "OpenTelemetryCollector" {
		w.Spec = document.Find(object, "spec")
		if config := document.Find(w.Spec, "config"); !document.IsNull(config) {
			w.Text = cut(part, config)
			return []Configuration{w}
		}
		return nil
	}
	var found []Configuration
	for _, section := range []string{"data", "stringData", "binaryData"} {
		files := document.Find(object, section)
		for i := 0; files != nil && i+1 < len(files.Content); i += 2 {
			name, text := files.Content[i].Value, cut(part, files.Content[i+1])
			if kind == "Secret" && section == "data" || section == "binaryData" {
				if plain, ok := secret(files.Content[i+1].Value); ok {
					text = plain
				}
			}
			already, others := all[name]
			all[name] = input.PackedFile{Text: text, Object: w.Object, Others: others && !bytes.Equal(already.Text, text)}
			switch detect.File(text) {
			case detect.Prometheus, detect.VMAgent, detect.Collector:
				of := w.Object + ", " + name
				found = append(found, Configuration{Text: text, Object: of, File: name, names: append(slices.Clone(w.names), name, of)})
			}
		}
	}
	return found
}

// cut returns the lines of a value that is a configuration. If the lines alone do not have the same value, as with
// aliases of anchors outside them, it returns the value itself.
func cut(part []byte, n *yaml.Node) []byte {
	if n.Kind == yaml.ScalarNode && n.Style&yaml.LiteralStyle == 0 {
		return []byte(n.Value)
	}
	text := cutLines(part, n)
	if n.Kind == yaml.ScalarNode {
		if !slices.EqualFunc(bytes.Fields(text), bytes.Fields([]byte(n.Value)), bytes.Equal) {
			return []byte(n.Value)
		}
		return text
	}
	if n.Style&yaml.FlowStyle == 0 {
		if root, err := document.ParseLoosely(text); err == nil && root != nil && document.SameValues(root, n) {
			return text
		}
	}
	text, err := document.Encode(n)
	if err != nil {
		return nil
	}
	return text
}

// cutLines returns the lines of a value in block style, preceded by empty lines that keep their line numbers.
func cutLines(part []byte, n *yaml.Node) []byte {
	from := n.Line
	if n.Kind == yaml.ScalarNode {
		from++
	}
	var made []byte
	number, indent := 0, -1
	for line := range bytes.Lines(part) {
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

// Is recognises a manifest by its top-level keys alone, as cheaply as IsPrometheus.
func Is(text []byte) bool {
	return bytes.HasPrefix(text, []byte("apiVersion:")) || bytes.Contains(text, []byte("\napiVersion:"))
}

// secret decodes a base64 text of Kubernetes, and decompresses it if it is gzip, as the operators' own configurations
// are.
func secret(text string) ([]byte, bool) {
	plain, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, false
	}
	if packed, err := gzip.NewReader(bytes.NewReader(plain)); err == nil {
		if plain, err = io.ReadAll(io.LimitReader(packed, document.MaxFile+1)); err != nil {
			return nil, false
		}
	}
	return document.Readable(plain), true
}
