// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"cmp"
	"maps"
	"net/http"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.yaml.in/yaml/v2"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/redact"
)

var redactor redact.Redactor

type (
	configurationJSON struct {
		Collector  buildJSON       `json:"collector"`
		YAML       string          `json:"yaml"`
		Redacted   int             `json:"redacted"`
		Components []componentJSON `json:"components"`
		Modules    []moduleJSON    `json:"modules"`
	}

	buildJSON struct {
		Name        string `json:"name"`
		Version     string `json:"version"`
		Description string `json:"description"`
		Go          string `json:"go"`
		Platform    string `json:"platform"`
	}

	componentJSON struct {
		ID          string     `json:"id"`
		Kind        string     `json:"kind"`
		Name        string     `json:"name"`
		Type        string     `json:"type"`
		Module      string     `json:"module"`
		Version     string     `json:"version"`
		Status      string     `json:"status"`
		StatusError string     `json:"status_error"`
		StatusSince *time.Time `json:"status_since"`
		Pipelines   []string   `json:"pipelines"`
		Seen        bool       `json:"seen"`
	}

	moduleJSON struct {
		Path    string `json:"path"`
		Version string `json:"version"`
	}
)

func (c *console) configuration(r *http.Request) (any, error) {
	format, err := oneOf(r, "format", formatJSON, "yaml")
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	conf := c.conf
	c.mu.Unlock()
	tree := map[string]any{}
	if conf != nil {
		tree = conf.ToStringMap() // a copy
	}
	clean, hidden := redactor.Tree(tree)
	text, err := yaml.Marshal(clean)
	if err != nil {
		return nil, &fault{http.StatusInternalServerError, "internal", "cannot write the configuration"}
	}
	if format == "yaml" {
		return &file{"application/yaml", "configuration.yaml", text}, nil
	}
	out := configurationJSON{
		Collector: buildJSON{
			Name: c.set.BuildInfo.Command, Version: c.set.BuildInfo.Version, Description: c.set.BuildInfo.Description,
			Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		},
		YAML: string(text), Redacted: hidden, Components: []componentJSON{}, Modules: modules(),
	}
	g := newGraph(conf)
	for _, id := range c.components(tree, g) {
		out.Components = append(out.Components, c.component(id, g, out.Modules))
	}
	return out, nil
}

// components are those of the pipelines, and the extensions.
func (c *console) components(tree map[string]any, g *graph) []string {
	ids := slices.Clone(g.order)
	service, _ := tree["service"].(map[string]any)
	for _, name := range names(service["extensions"]) {
		ids = append(ids, "extension/"+name)
	}
	return ids
}

func (c *console) component(id string, g *graph, built []moduleJSON) componentJSON {
	kind, name, _ := strings.Cut(id, "/")
	kindOf, _, _ := strings.Cut(name, "/")
	state := c.status(id)
	out := componentJSON{
		ID: id, Kind: kind, Name: name, Type: kindOf, Status: state.name, StatusError: state.text, StatusSince: state.since, Pipelines: []string{},
	}
	if n := g.nodes[id]; n != nil {
		out.Pipelines = n.pipelines
	}
	for _, s := range c.all() {
		out.Seen = out.Seen || s.node() == id
	}
	module := c.moduleOf(kind, kindOf, built)
	out.Module, out.Version = module.Path, module.Version
	return out
}

var kindsByName = map[string]component.Kind{
	wordReceiver: component.KindReceiver, wordProcessor: component.KindProcessor, wordExporter: component.KindExporter,
	wordConnector: component.KindConnector, wordExtension: component.KindExtension,
}

// moduleOf finds where a component comes from: its configuration is a type of its own package.
func (c *console) moduleOf(kind, name string, built []moduleJSON) (found moduleJSON) {
	c.mu.Lock()
	host, ok := c.host.(interface {
		GetFactory(kind component.Kind, componentType component.Type) component.Factory
	})
	c.mu.Unlock()
	typ, err := component.NewType(name)
	if !ok || err != nil {
		return found
	}
	factory := host.GetFactory(kindsByName[kind], typ)
	if factory == nil {
		return found
	}
	cfg := reflect.TypeOf(factory.CreateDefaultConfig())
	for cfg != nil && cfg.Kind() == reflect.Pointer {
		cfg = cfg.Elem()
	}
	if cfg == nil {
		return found
	}
	for _, m := range built {
		if (cfg.PkgPath() == m.Path || strings.HasPrefix(cfg.PkgPath(), m.Path+"/")) && len(m.Path) > len(found.Path) {
			found = m
		}
	}
	return found
}

// modules are those that the binary is built of.
func modules() []moduleJSON {
	out := []moduleJSON{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	seen := map[string]string{info.Main.Path: info.Main.Version}
	for _, dep := range info.Deps {
		seen[dep.Path] = dep.Version
	}
	for _, path := range slices.Sorted(maps.Keys(seen)) {
		if path != "" {
			out = append(out, moduleJSON{path, cmp.Or(seen[path], "(devel)")})
		}
	}
	return out
}
