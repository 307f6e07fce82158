// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package input

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// A Section is a mapping of the input. Reading a key claims it.
type Section struct {
	In      *Input
	File    string
	Path    string
	Node    *yaml.Node
	claimed map[string]bool
}

// Section returns a mapping whose keys must be claimed. If node is not a mapping, Section reports that and returns an
// empty one.
func (in *Input) Section(file, path string, node *yaml.Node) *Section {
	s := &Section{In: in, File: file, Path: path, Node: node, claimed: map[string]bool{}}
	if !document.IsNull(node) && node.Kind != yaml.MappingNode {
		s.Say(report.Lost, node, "", NoMapping)
	}
	in.sections = append(in.sections, s)
	return s
}

// Join returns the path of a key.
func (s *Section) Join(key string) string {
	if s.Path == "" || key == "" {
		return s.Path + key
	}
	return s.Path + "." + key
}

// Say reports a finding about a key, or about the section if key is empty.
func (s *Section) Say(kind report.Outcome, at *yaml.Node, key, text string) {
	f := report.Finding{Kind: kind, File: s.File, Path: s.Join(key), Text: text}
	if at != nil {
		f.Line = at.Line
	} else if s.Node != nil {
		f.Line = s.Node.Line
	}
	s.In.Report.Add(f)
}

// Claim claims keys with whatever they contain.
func (s *Section) Claim(keys ...string) {
	for _, key := range keys {
		s.claimed[key] = true
	}
}

// IsClaimed reports whether a key was claimed.
func (s *Section) IsClaimed(key string) bool { return s.claimed[key] }

// Get claims a key with all that it contains, and returns its value, nil if that is null.
func (s *Section) Get(key string) *yaml.Node {
	value := document.Find(s.Node, key)
	s.Claim(key)
	if document.IsNull(value) {
		return nil
	}
	return value
}

// Has reports whether a key is present and not null, without claiming it.
func (s *Section) Has(key string) bool { return !document.IsNull(document.Find(s.Node, key)) }

// Text claims a key with a scalar value.
func (s *Section) Text(key string) string {
	value := s.Get(key)
	if value == nil {
		return ""
	}
	if value.Kind != yaml.ScalarNode {
		s.Say(report.Lost, value, key, NoValue)
		return ""
	}
	return value.Value
}

// Yes claims a key that is true or false, and returns otherwise for other values.
func (s *Section) Yes(key string, otherwise bool) bool {
	switch strings.ToLower(s.Text(key)) {
	case "true", "yes", "on", "y":
		return true
	case "false", "no", "off", "n":
		return false
	}
	return otherwise
}

// Number claims a key with a whole number, and returns 0 if there is none.
func (s *Section) Number(key string) int64 {
	text := s.Text(key)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		s.Say(report.Lost, document.Find(s.Node, key), key, "it must be a whole number")
	}
	return n
}

// Sub claims a key whose value has keys that must be claimed in turn. It returns nil if there is none.
func (s *Section) Sub(key string) *Section {
	value := s.Get(key)
	if value == nil {
		return nil
	}
	return s.In.Section(s.File, s.Join(key), value)
}

// Items claims a key whose value is a list, and returns its items.
func (s *Section) Items(key string) []*yaml.Node { return document.Contents(s.ListNode(key)) }

// ListNode claims a key whose value is a list. It returns nil if there is none.
func (s *Section) ListNode(key string) *yaml.Node {
	value := s.Get(key)
	if value != nil && value.Kind != yaml.SequenceNode {
		s.Say(report.Lost, value, key, NoList)
		return nil
	}
	return value
}

// Findings for values of the wrong kind.
const (
	NoList    = "it must be a list"
	NoMapping = "it must have keys and values"
	NoValue   = "it must be one value"
)

// List claims a key whose value is a list of sections.
func (s *Section) List(key string) []*Section {
	var out []*Section
	for i, item := range s.Items(key) {
		out = append(out, s.In.Section(s.File, fmt.Sprintf("%s[%d]", s.Join(key), i), item))
	}
	return out
}

// Lose claims keys without an equivalent, and reports those that are present.
func (s *Section) Lose(kind report.Outcome, text string, keys ...string) {
	for _, key := range keys {
		if value := s.Get(key); value != nil {
			s.Say(kind, value, key, text)
		}
	}
}

// close reports the keys that were not claimed.
func (s *Section) close() {
	if s.Node == nil || s.Node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(s.Node.Content); i += 2 {
		if key := s.Node.Content[i]; !s.claimed[key.Value] {
			s.Say(report.Lost, key, key.Value, "this key is not known here")
		}
	}
}
