// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Table is a mapping being written: its keys are in the order in which they were set.
type Table struct{ Node *yaml.Node }

// NewTable makes an empty one.
//
//go:noinline
func NewTable() Table {
	return Table{&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}}
}

// TableOf returns a table for an existing mapping.
func TableOf(node *yaml.Node) Table { return Table{node} }

// Set adds a key. A value is a text, an integer, a boolean, a list of texts, a table or a node; texts are used as they
// are.
func (t Table) Set(key string, value any) Table {
	t.Node.Content = append(t.Node.Content, StringNode(key), NodeOf(value))
	return t
}

// Say puts a comment above the last key that was set.
func (t Table) Say(comment string) {
	t.Node.Content[len(t.Node.Content)-2].HeadComment = comment
}

// Empty reports whether nothing was set.
func (t Table) Empty() bool { return len(t.Node.Content) == 0 }

// Has reports whether a key is there.
func (t Table) Has(key string) bool { return Find(t.Node, key) != nil }

// StringNode is a text, whatever it looks like.
//
//go:noinline
func StringNode(value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	if strings.Contains(value, "\n") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// NodeOf returns a value that Set accepts, as a node.
func NodeOf(value any) *yaml.Node {
	switch v := value.(type) {
	case *yaml.Node:
		return v
	case Table:
		return v.Node
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	case int64:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v, 10)}
	case int:
		return NodeOf(int64(v))
	case string:
		return StringNode(v)
	case []string:
		list := SequenceNode()
		list.Style = yaml.FlowStyle
		for _, item := range v {
			list.Content = append(list.Content, StringNode(item))
		}
		return list
	default:
		return StringNode(fmt.Sprint(v))
	}
}

// SequenceNode returns a list.
func SequenceNode(items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: items}
}

// Alike reports whether two values are written the same.
func Alike(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	one, err := Encode(a)
	if err != nil {
		return false
	}
	other, err := Encode(b)
	return err == nil && bytes.Equal(one, other)
}

// Encode writes a value.
func Encode(root *yaml.Node) ([]byte, error) {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("cannot write YAML: %w", err)
	}
	return text.Bytes(), nil
}
