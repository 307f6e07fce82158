// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package typo

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Components get the merged content of all files, without names and lines. So the files with which the process was
// started are remembered by name, and read again when the place of a key is needed.
var (
	mu    sync.Mutex
	files []string
)

const (
	// maxFile limits the size of a file that is searched.
	maxFile = 16 << 20
	// maxPlaces is the maximum number of places of a key that is useful in a message.
	maxPlaces = 3
)

// LookIn sets the names of the user's files.
func LookIn(names ...string) {
	mu.Lock()
	defer mu.Unlock()
	files = names
}

// Place returns where a key is, "" if that is not known.
func Place(key string) string { return PlaceOf(key) }

// PlaceOf returns where a value is, by the last parts of its path: keys of mappings, and [i] for an index of a list.
func PlaceOf(path ...string) string {
	return placeOf(func(*yaml.Node) bool { return true }, path)
}

// placeOf returns only the places of values that fit, if there are any.
func placeOf(fits func(*yaml.Node) bool, path []string) string {
	found := func(fits func(*yaml.Node) bool) string {
		return place(func(root *yaml.Node) (lines []int) {
			look(root, nil, func(n *yaml.Node, at []string, line int) {
				if len(at) >= len(path) && slices.Equal(at[len(at)-len(path):], path) && fits(n) {
					lines = append(lines, line)
				}
			})
			return lines
		})
	}
	if text := found(fits); text != "" {
		return text
	}
	return found(func(*yaml.Node) bool { return true })
}

// PlaceIn returns where a value is in a mapping that is identified by a key with a value, such as a job by its name.
func PlaceIn(key, value string, path ...string) string {
	return place(func(root *yaml.Node) (found []int) {
		look(root, nil, func(n *yaml.Node, _ []string, _ int) {
			if !has(n, key, value) {
				return
			}
			look(n, nil, func(_ *yaml.Node, at []string, line int) {
				if slices.Equal(at, path) {
					found = append(found, line)
				}
			})
		})
		return found
	})
}

// PlaceOfMentioned returns where a value is that an error mentions, and its key: an address or a file below a path, the
// longest if there are several.
func PlaceOfMentioned(text string, below ...string) string {
	var keys []string
	where := place(func(root *yaml.Node) (lines []int) {
		longest := 1
		look(root, nil, func(n *yaml.Node, at []string, line int) {
			within := len(at) >= len(below) && slices.Equal(at[:len(below)], below)
			if size := len(n.Value); n.Kind == yaml.ScalarNode && within && size >= longest && mentions(text, n.Value) {
				if size > longest {
					longest, lines, keys = size, nil, nil
				}
				lines, keys = append(lines, line), append(keys, strings.Join(at, "::"))
			}
		})
		return lines
	})
	if len(keys) != 1 {
		return where
	}
	return strings.Replace(where, "(", "(`"+keys[0]+"`, ", 1)
}

// mentions reports whether a text contains an address or a file, as it is or as the system writes it: localhost becomes
// a number.
func mentions(text, value string) bool {
	if len(value) < 4 || !strings.ContainsAny(value, ":/") || strings.ContainsAny(value, " $") {
		return false
	}
	if strings.Contains(text, value) {
		return true
	}
	colon := strings.LastIndexByte(value, ':')
	return colon >= 0 && len(value) > colon+2 && strings.Trim(value[colon+1:], "0123456789") == "" && strings.Contains(text, value[colon:]+":")
}

// place returns the lines of the files in which something is found, "" if they are too many.
func place(find func(root *yaml.Node) []int) string {
	mu.Lock()
	defer mu.Unlock()
	var found []string
	for _, name := range files {
		root := read(name)
		if root == nil {
			continue
		}
		for _, line := range find(root) {
			found = append(found, fmt.Sprintf("%s:%d", name, line))
		}
	}
	if len(found) == 0 || len(found) > maxPlaces {
		return ""
	}
	return " (" + strings.Join(found, " or ") + ")"
}

func read(name string) *yaml.Node {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil
	}
	text, err := os.ReadFile(name) //nolint:gosec // the user has named it
	if err != nil {
		return nil
	}
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	return doc.Content[0]
}

// look visits the values below a node, with their path and the line of their key. Aliases have no content.
func look(n *yaml.Node, path []string, visit func(n *yaml.Node, path []string, line int)) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			at := append(slices.Clip(path), n.Content[i].Value)
			visit(n.Content[i+1], at, n.Content[i].Line)
			look(n.Content[i+1], at, visit)
		}
	case yaml.SequenceNode:
		for i, element := range n.Content {
			at := append(slices.Clip(path), fmt.Sprintf("[%d]", i))
			visit(element, at, element.Line)
			look(element, at, visit)
		}
	default: // other nodes have no children
	}
}

func has(n *yaml.Node, key, value string) bool {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key && n.Content[i+1].Value == value {
			return true
		}
	}
	return false
}
