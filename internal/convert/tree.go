// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxFile bounds a file, in bytes.
	maxFile = 16 << 20
	// maxNodes bounds what aliases can make of one.
	maxNodes = 1 << 20
)

// parse reads YAML and puts what aliases and merge keys stand for in their place. It returns nil for an empty document, and an error for one that
// says something twice: whoever it is for refuses it, too, or takes one of both.
func parse(text []byte) (*yaml.Node, error) { return tree(text, true) }

// parseLoosely is parse for what is only looked at.
func parseLoosely(text []byte) (*yaml.Node, error) { return tree(text, false) }

func tree(text []byte, strictly bool) (*yaml.Node, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it is larger than %d MiB", maxFile>>20)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	if strictly {
		var repeated *mistake
		if errors.As(twice("", &doc, nil, 0), &repeated) {
			return nil, fmt.Errorf("line %d: %s", repeated.line, repeated.text)
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

var errAliases = errors.New("its aliases stand for too much")

// maxDepth bounds how deep values lie in each other.
const maxDepth = 200

// expand copies a node without aliases and merge keys.
func expand(n *yaml.Node, left *int, depth int) (*yaml.Node, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if *left--; *left < 0 || depth > maxDepth {
		return nil, errAliases
	}
	out := *n
	out.Anchor, out.Alias, out.Content = "", nil, nil
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
			value.Value = "null" // nothing is written as an empty text between braces
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
				if find(&out, s.Content[i].Value) == nil {
					out.Content = append(out.Content, s.Content[i], s.Content[i+1])
				}
			}
		}
	}
	return &out, nil
}

// find returns the value of a key of a mapping, or nil. It is not inlined, as others here, for the size of the binary: nothing
// is in a hurry.
//
//go:noinline
func find(n *yaml.Node, key string) *yaml.Node {
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

// remove takes a key out of a mapping, and returns its value.
//
//go:noinline
func remove(n *yaml.Node, key string) *yaml.Node {
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

// isNull tells values that say nothing.
//
//go:noinline
func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

// A section is a mapping of the input. What is read of it is claimed.
type section struct {
	in      *input
	file    string
	path    string
	node    *yaml.Node
	claimed map[string]bool
}

// section makes a mapping one whose keys have to be claimed. It is empty for what is none, which is reported.
func (in *input) section(file, path string, node *yaml.Node) *section {
	s := &section{in: in, file: file, path: path, node: node, claimed: map[string]bool{}}
	if !isNull(node) && node.Kind != yaml.MappingNode {
		s.say(Lost, node, "", noMapping)
	}
	in.sections = append(in.sections, s)
	return s
}

func (s *section) join(key string) string {
	if s.path == "" || key == "" {
		return s.path + key
	}
	return s.path + "." + key
}

// say reports something about a key, or about the section where the key is empty.
func (s *section) say(kind Outcome, at *yaml.Node, key, text string) {
	f := Finding{Kind: kind, File: s.file, Path: s.join(key), Text: text}
	if at != nil {
		f.Line = at.Line
	} else if s.node != nil {
		f.Line = s.node.Line
	}
	s.in.report.add(f)
}

// get claims a key with all that is in it. What says nothing is nil.
func (s *section) get(key string) *yaml.Node {
	value := find(s.node, key)
	s.claimed[key] = true
	if isNull(value) {
		return nil
	}
	return value
}

// has tells whether a key is there, and says something. It claims nothing.
func (s *section) has(key string) bool { return !isNull(find(s.node, key)) }

// text claims a key whose value is one text, number or truth.
func (s *section) text(key string) string {
	value := s.get(key)
	if value == nil {
		return ""
	}
	if value.Kind != yaml.ScalarNode {
		s.say(Lost, value, key, noValue)
		return ""
	}
	return value.Value
}

// yes claims a key that is true or false.
func (s *section) yes(key string, otherwise bool) bool {
	switch strings.ToLower(s.text(key)) {
	case "true", "yes", "on", "y":
		return true
	case "false", "no", "off", "n":
		return false
	}
	return otherwise
}

// number claims a key with a whole number, 0 where there is none.
func (s *section) number(key string) int64 {
	text := s.text(key)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		s.say(Lost, find(s.node, key), key, "it must be a whole number")
	}
	return n
}

// sub claims a key whose value has keys of its own to be claimed. It is nil where there is none.
func (s *section) sub(key string) *section {
	value := s.get(key)
	if value == nil {
		return nil
	}
	return s.in.section(s.file, s.join(key), value)
}

// items claims a key whose value is a list, and returns what is in it.
func (s *section) items(key string) []*yaml.Node { return contents(s.listNode(key)) }

// listNode claims a key whose value is a list. It is nil where there is none.
func (s *section) listNode(key string) *yaml.Node {
	value := s.get(key)
	if value != nil && value.Kind != yaml.SequenceNode {
		s.say(Lost, value, key, noList)
		return nil
	}
	return value
}

// What is said of values that have another form.
const (
	noList    = "it must be a list"
	noMapping = "it must have keys and values"
	noValue   = "it must be one value"
)

// list claims a key whose value is a list of sections.
func (s *section) list(key string) []*section {
	var out []*section
	for i, item := range s.items(key) {
		out = append(out, s.in.section(s.file, fmt.Sprintf("%s[%d]", s.join(key), i), item))
	}
	return out
}

// lose claims keys that have no equivalent, and says so of those that are there.
func (s *section) lose(kind Outcome, text string, keys ...string) {
	for _, key := range keys {
		if value := s.get(key); value != nil {
			s.say(kind, value, key, text)
		}
	}
}

// close reports the keys that nobody has claimed.
func (s *section) close() {
	if s.node == nil || s.node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(s.node.Content); i += 2 {
		if key := s.node.Content[i]; !s.claimed[key.Value] {
			s.say(Lost, key, key.Value, "this key is not known here")
		}
	}
}
