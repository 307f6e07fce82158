// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A mistake is what is wrong with a file as it was written. The collector would say so too, but of what it has made of all files by then,
// and without the line.
type mistake struct {
	file string
	line int
	path []string
	text string
}

func (m *mistake) Error() string {
	where := m.file
	if m.line > 0 {
		where += fmt.Sprintf(":%d", m.line)
	}
	if len(m.path) > 0 {
		where += ": " + strings.Join(m.path, "::")
	}
	return where + ": " + m.text
}

// written is a file that --config names.
type written struct {
	name string
	text []byte
	root *yaml.Node
}

// lookup tells a variable of the environment.
type lookup func(name string) (string, bool)

// mistakes finds what is wrong with files of a collector. Keys that --set replaces are left alone.
func mistakes(distribution string, files []written, set []string, environment lookup) error {
	m := &finder{distribution: distribution, set: set, environment: environment, used: map[string]bool{}, configured: map[string][]string{}}
	for i := range files {
		f := &files[i]
		var doc yaml.Node
		if err := yaml.Unmarshal(f.text, &doc); err != nil {
			return &mistake{file: f.name, line: brokenAt(f.text), text: "cannot read it as YAML: " + syntax(err)}
		}
		if err := twice(f.name, &doc, nil, 0); err != nil {
			return err
		}
		if len(doc.Content) == 1 && doc.Content[0].Kind == yaml.MappingNode {
			f.root = doc.Content[0]
			m.uses(f.root)
			m.configures(f.root)
		}
	}
	for i := range files {
		m.file, m.later = files[i].name, files[i+1:]
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

// A finder looks through one file after the other.
type finder struct {
	set         []string
	environment lookup
	file        string
	later       []written
	// distribution is what the files are for.
	distribution string
	// used are the components of pipelines, and extensions, by section and ID; configured are the IDs of each section.
	used       map[string]bool
	configured map[string][]string
}

// uses remembers which components the service has.
func (m *finder) uses(root *yaml.Node) {
	service := find(root, "service")
	for _, id := range contents(find(service, "extensions")) {
		m.used["extensions::"+id.Value] = true
	}
	pipelines := find(service, "pipelines")
	if pipelines == nil {
		return
	}
	for i := 1; i < len(pipelines.Content); i += 2 {
		for _, kind := range componentKinds[:3] {
			for _, id := range contents(find(pipelines.Content[i], kind)) {
				m.used[kind+"::"+id.Value] = true
				m.used["connectors::"+id.Value] = true
			}
		}
	}
}

// configures remembers which components there are.
func (m *finder) configures(root *yaml.Node) {
	for _, kind := range componentKinds {
		section := find(root, kind)
		for i := 0; section != nil && i+1 < len(section.Content); i += 2 {
			m.configured[kind] = append(m.configured[kind], section.Content[i].Value)
		}
	}
}

// isUsed tells whether a component does anything. Where no pipeline is known, all may.
func (m *finder) isUsed(kind, id string) bool {
	return len(m.used) == 0 || !slices.Contains(componentKinds, kind) || m.used[kind+"::"+id]
}

// isReplaced tells whether --set or a later file has another value.
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
			n = find(n, key)
		}
		if n != nil {
			return true
		}
	}
	return false
}
