// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package document reads YAML together with its line numbers, and writes it.
package document

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// MaxFile is the largest size of a file, in bytes.
	MaxFile = 16 << 20
	// maxNodes limits how large aliases can make a document.
	maxNodes = 1 << 20
)

// Parse reads YAML and replaces aliases and merge keys by what they stand for. It returns nil for an empty document,
// and an error for one with a repeated key: the program it is for refuses that, too, or uses only one of the two.
func Parse(text []byte) (*yaml.Node, error) { return tree(text, true) }

// ParseLoosely is Parse for documents that are only inspected.
func ParseLoosely(text []byte) (*yaml.Node, error) { return tree(text, false) }

func tree(text []byte, strictly bool) (*yaml.Node, error) {
	if len(text) > MaxFile {
		return nil, fmt.Errorf("it is larger than %d MiB", MaxFile>>20)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(hideVariables(text), &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	if strictly {
		var repeated *FaultError
		if errors.As(RepeatedKey("", &doc), &repeated) {
			return nil, fmt.Errorf("line %d: %s", repeated.Line, repeated.Text)
		}
	}
	left := maxNodes
	root, err := expand(doc.Content[0], &left, 0)
	if err != nil {
		return nil, err
	}
	if root.HeadComment == "" {
		root.HeadComment = doc.HeadComment
	}
	return root, nil
}

// ErrAliases is returned for documents that would become too large.
var ErrAliases = errors.New("its aliases stand for too much")

// MaxDepth limits how deeply values are nested.
const MaxDepth = 200

// expand copies a node without aliases and merge keys.
func expand(n *yaml.Node, left *int, depth int) (*yaml.Node, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if *left--; *left < 0 || depth > MaxDepth {
		return nil, ErrAliases
	}
	out := *n
	out.Anchor, out.Alias, out.Content = "", nil, nil
	for _, text := range []*string{&out.Value, &out.HeadComment, &out.LineComment, &out.FootComment} {
		*text = ShowVariables(*text)
	}
	if n.Kind != yaml.MappingNode {
		for _, c := range n.Content {
			e, err := expand(c, left, depth+1)
			if err != nil {
				return nil, err
			}
			out.Content = append(out.Content, e)
		}
		return &out, nil
	}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := expand(n.Content[i], left, depth+1)
		if err != nil {
			return nil, err
		}
		value, err := expand(n.Content[i+1], left, depth+1)
		if err != nil {
			return nil, err
		}
		if key.Tag == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if value.Tag == "!!null" && value.Value == "" && n.Style&yaml.FlowStyle != 0 {
			value.Value = "null" // without it, an empty text would be written between braces
		}
		out.Content = append(out.Content, key, value)
	}
	for _, m := range merged {
		sources := []*yaml.Node{m}
		if m.Kind == yaml.SequenceNode {
			sources = m.Content
		}
		for _, s := range sources {
			for i := 0; i+1 < len(s.Content) && s.Kind == yaml.MappingNode; i += 2 {
				if Find(&out, s.Content[i].Value) == nil {
					out.Content = append(out.Content, s.Content[i], s.Content[i+1])
				}
			}
		}
	}
	return &out, nil
}

// Find returns the value of a key of a mapping, or nil. It is not inlined, as others here, for the size of the binary: nothing
// is in a hurry.
//
//go:noinline
func Find(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// Remove takes a key out of a mapping, and returns its value.
//
//go:noinline
func Remove(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			value := n.Content[i+1]
			n.Content = append(n.Content[:i:i], n.Content[i+2:]...)
			return value
		}
	}
	return nil
}

// IsNull reports whether a value is missing or null.
//
//go:noinline
func IsNull(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

// TextOf returns the text under a key, "" if there is none.
func TextOf(n *yaml.Node, key string) string {
	if value := Find(n, key); value != nil {
		return value.Value
	}
	return ""
}

// Truths are the words that Prometheus' YAML takes for truths, and a collector's for texts.
var Truths = map[string]string{"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}

// Truth reports whether a text says yes.
//
//go:noinline
func Truth(text string) bool {
	text = strings.ToLower(text)
	if plain, ok := Truths[text]; ok {
		text = plain
	}
	yes, _ := strconv.ParseBool(text)
	return yes
}

// Contents are the items of a list, none of anything else.
//
//go:noinline
func Contents(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// Texts are the items of a list as texts.
func Texts(list *yaml.Node) []string { return ValuesOf(Contents(list)) }

// ValuesOf are the texts of nodes.
func ValuesOf(items []*yaml.Node) []string {
	var values []string
	for _, item := range items {
		values = append(values, item.Value)
	}
	return values
}

// SameValues reports whether two trees say the same, whatever their comments.
func SameValues(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.Tag == b.Tag && a.Value == b.Value && slices.EqualFunc(a.Content, b.Content, SameValues)
}
