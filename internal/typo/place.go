// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package typo

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Components get what all files together make, without files and lines. So what the process was started with is
// remembered by name, and read again when somebody has to be told where a key is.
var (
	mu    sync.Mutex
	files []string
)

const (
	// maxFile bounds a file that is looked through.
	maxFile = 16 << 20
	// maxPlaces bounds how often a key may be there to be worth a word.
	maxPlaces = 3
)

// LookIn names the files that the user has written.
func LookIn(names ...string) {
	mu.Lock()
	defer mu.Unlock()
	files = names
}

// Place says where a key is, or nothing if that is not known.
func Place(key string) string {
	mu.Lock()
	defer mu.Unlock()
	var found []string
	for _, name := range files {
		for _, line := range lines(name, key) {
			found = append(found, fmt.Sprintf("%s:%d", name, line))
		}
	}
	if len(found) == 0 || len(found) > maxPlaces {
		return ""
	}
	return " (" + strings.Join(found, " or ") + ")"
}

// lines are those of a file in which a mapping has a key.
func lines(name, key string) (found []int) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil
	}
	text, err := os.ReadFile(name) //nolint:gosec // the user has named it
	if err != nil {
		return nil
	}
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil {
		return nil
	}
	var look func(n *yaml.Node)
	look = func(n *yaml.Node) {
		for i, child := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 && child.Value == key {
				found = append(found, child.Line)
			}
			look(child) // aliases have no content
		}
	}
	look(&doc)
	return found
}
