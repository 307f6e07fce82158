// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package mistakes finds what is wrong with a collector's files while their lines are known: the collector itself sees only the merged result.
package mistakes

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/components"
	"github.com/godwit-otel/godwit/internal/convert/document"
)

// File is a file that --config names.
type File struct {
	Name string
	Text []byte
	root *yaml.Node
}

// lookup looks up an environment variable.
type lookup func(name string) (string, bool)

// Find returns the first error in a collector's files. Keys that --set replaces are ignored.
func Find(distribution string, files []File, set []string, environment lookup) error {
	m := &finder{distribution: distribution, set: set, environment: environment, used: map[string]bool{}, configured: map[string][]string{}, open: map[string]bool{}}
	for i := range files {
		f := &files[i]
		var doc yaml.Node
		if err := yaml.Unmarshal(f.Text, &doc); err != nil {
			return &document.FaultError{File: f.Name, Line: document.BrokenAt(f.Text), Text: "cannot read it as YAML: " + document.Explain(err)}
		}
		if err := document.RepeatedKey(f.Name, &doc); err != nil {
			return err
		}
		if len(doc.Content) == 1 && doc.Content[0].Kind == yaml.MappingNode {
			f.root = doc.Content[0]
			m.uses(f.root)
			m.configures(f.root)
		}
	}
	for i := range files {
		m.file, m.later = files[i].Name, files[i+1:]
		if files[i].root == nil {
			continue
		}
		if err := m.keys(files[i].root); err != nil {
			return err
		}
		if err := m.values(files[i].root, nil, 0); err != nil {
			return err
		}
	}
	return nil
}

// A finder checks one file after the other.
type finder struct {
	set         []string
	environment lookup
	file        string
	later       []File
	// distribution is the one that will run the files.
	distribution string
	// used are the components of pipelines, and extensions, by section and ID. configured are the IDs in each section.
	// open are sections that may have more IDs, from elsewhere.
	used       map[string]bool
	configured map[string][]string
	open       map[string]bool
}

// at returns an error about a value or a key.
func (m *finder) at(n *yaml.Node, path []string, text string) error {
	return &document.FaultError{File: m.file, Line: n.Line, Path: path, Text: text}
}

// uses records the components that the service uses.
func (m *finder) uses(root *yaml.Node) {
	service := document.Find(root, "service")
	for _, id := range document.Contents(document.Find(service, "extensions")) {
		m.used["extensions::"+id.Value] = true
	}
	pipelines := document.Find(service, "pipelines")
	if pipelines == nil {
		return
	}
	for i := 1; i < len(pipelines.Content); i += 2 {
		for _, kind := range components.Kinds[:3] {
			for _, id := range document.Contents(document.Find(pipelines.Content[i], kind)) {
				m.used[kind+"::"+id.Value] = true
				m.used["connectors::"+id.Value] = true
			}
		}
	}
}

// configures records the components that are configured.
func (m *finder) configures(root *yaml.Node) {
	for _, kind := range components.Kinds {
		section := document.Find(root, kind)
		if document.IsNull(section) {
			continue
		}
		m.open[kind] = m.open[kind] || section.Kind != yaml.MappingNode || document.Find(section, "<<") != nil
		for i := 0; i+1 < len(section.Content); i += 2 {
			m.configured[kind] = append(m.configured[kind], section.Content[i].Value)
		}
	}
}

// isUsed reports whether a component does anything. If no pipeline is known, all may.
func (m *finder) isUsed(kind, id string) bool {
	return len(m.used) == 0 || !slices.Contains(components.Kinds, kind) || m.used[kind+"::"+id]
}

// isReplaced reports whether --set or a later file replaces a value.
func (m *finder) isReplaced(path []string) bool {
	dotted := strings.Join(path, ".")
	for _, set := range m.set {
		if key, _, _ := strings.Cut(set, "="); strings.ReplaceAll(key, "::", ".") == dotted {
			return true
		}
	}
	for i := range m.later {
		n := m.later[i].root
		for _, key := range path {
			n = document.Find(n, key)
		}
		if n != nil {
			return true
		}
	}
	return false
}
