// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package configuration shows the effective configuration without its secrets, and the modules of the binary.
package configuration

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

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/service"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/redact"
)

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

// View shows the configuration.
type View struct {
	Sources *sources.Registry
	Service *service.Service
	Build   component.BuildInfo
}

// Answer answers with the configuration and its components.
func (v *View) Answer(r *http.Request) (any, error) {
	format, err := answer.Format(r, answer.FormatJSON, "yaml")
	if err != nil {
		return nil, err
	}
	conf := v.Service.Configuration()
	tree := map[string]any{}
	if conf != nil {
		tree = conf.ToStringMap() // a copy
	}
	clean, hidden := redact.Tree(tree)
	text, err := yaml.Marshal(clean)
	if err != nil {
		return nil, &answer.Error{Status: http.StatusInternalServerError, Code: answer.CodeInternal, Message: "cannot write the configuration"}
	}
	if format == "yaml" {
		return &answer.File{Kind: "application/yaml", Name: "configuration.yaml", Data: text}, nil
	}
	out := configurationJSON{
		Collector: buildJSON{
			Name: v.Build.Command, Version: v.Build.Version, Description: v.Build.Description,
			Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		},
		YAML: string(text), Redacted: hidden, Components: []componentJSON{}, Modules: modules(),
	}
	g := service.NewGraph(conf)
	for _, id := range components(tree, g) {
		out.Components = append(out.Components, v.component(id, g, out.Modules))
	}
	return out, nil
}

// components returns the components of the pipelines, and the extensions.
func components(tree map[string]any, g *service.Graph) []string {
	ids := slices.Clone(g.Order)
	settings, _ := tree["service"].(map[string]any)
	for _, name := range service.Names(settings["extensions"]) {
		ids = append(ids, sources.Extension+"/"+name)
	}
	return ids
}

func (v *View) component(id string, g *service.Graph, built []moduleJSON) componentJSON {
	kind, name, _ := strings.Cut(id, "/")
	kindOf, _, _ := strings.Cut(name, "/")
	status := v.Service.Status(id)
	out := componentJSON{
		ID: id, Kind: kind, Name: name, Type: kindOf, Status: status.Name, StatusError: status.Error, StatusSince: status.Since, Pipelines: []string{},
	}
	if n := g.Nodes[id]; n != nil {
		out.Pipelines = n.Pipelines
	}
	for _, s := range v.Sources.All() {
		out.Seen = out.Seen || s.Node() == id
	}
	module := v.moduleOf(kind, kindOf, built)
	out.Module, out.Version = module.Path, module.Version
	return out
}

// moduleOf returns the module of a component, which contains the type of its configuration.
func (v *View) moduleOf(kind, name string, built []moduleJSON) (found moduleJSON) {
	typ, err := component.NewType(name)
	if err != nil {
		return found
	}
	factory := v.Service.Factory(sources.Kind(kind), typ)
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

// modules returns the modules that the binary consists of.
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
