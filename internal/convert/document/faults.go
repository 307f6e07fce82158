// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A FaultError is an error in a file as it was written. The collector would report it, too, but for the merged
// configuration, and without the line.
type FaultError struct {
	File string
	Line int
	Path []string
	Text string
}

func (f *FaultError) Error() string {
	where := f.File
	if f.Line > 0 {
		where += fmt.Sprintf(":%d", f.Line)
	}
	if len(f.Path) > 0 {
		where += ": " + strings.Join(f.Path, "::")
	}
	return where + ": " + f.Text
}

// BrokenAt returns the first line with which a text is not YAML. The parser often names the line where the block began.
func BrokenAt(text []byte) int {
	lines := bytes.SplitAfter(hideVariables(text), []byte("\n"))
	reads := func(n int) bool {
		var doc yaml.Node
		return yaml.Unmarshal(bytes.Join(lines[:n], nil), &doc) == nil
	}
	well, broken := 0, len(lines)
	for broken-well > 1 {
		if middle := (well + broken) / 2; reads(middle) {
			well = middle
		} else if next := readsSoon(middle, broken, reads); next > 0 {
			well = next // a list or quoted text ended
		} else {
			broken = middle
		}
	}
	return broken
}

// maxUnended limits the lines of a list in brackets or a quoted text.
const maxUnended = 8

func readsSoon(from, to int, reads func(n int) bool) int {
	for n := from + 1; n < min(to, from+maxUnended); n++ {
		if reads(n) {
			return n
		}
	}
	return 0
}

// AtLine returns a parser's error with the line from which the text is not YAML.
func AtLine(text []byte, fault error) error {
	if !strings.HasPrefix(fault.Error(), "yaml: ") {
		return fault
	}
	return fmt.Errorf("line %d: %s", BrokenAt(text), Explain(fault))
}

var parserLine = regexp.MustCompile(`^(yaml: )?(line \d+: )?`)

// Explain returns the parser's message, without its line.
func Explain(err error) string {
	text := parserLine.ReplaceAllString(err.Error(), "")
	switch {
	case strings.Contains(text, "found character that cannot start any token"), strings.Contains(text, "tab character"):
		text += "; indent with spaces, not with tabs, and put a value that begins with %, @ or ` in quotes"
	case strings.Contains(text, "did not find expected"), strings.Contains(text, "mapping values are not allowed"):
		text += "; look at how this line and the one before it are indented, and put a text that has `: ` in it in quotes"
	}
	return text
}

// RepeatedKey finds a key that a mapping has twice. The collector would report it without the file.
func RepeatedKey(file string, n *yaml.Node) error { return repeatedKey(file, n, nil, 0) }

func repeatedKey(file string, n *yaml.Node, path []string, depth int) error {
	if depth > MaxDepth {
		return nil
	}
	lines := map[string]int{}
	for i, child := range n.Content {
		at := path
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if first, found := lines[child.Value]; found && child.Kind == yaml.ScalarNode && child.Value != "<<" {
				return &FaultError{file, child.Line, path, fmt.Sprintf("the key `%s` is there already, in line %d", child.Value, first)}
			}
			lines[child.Value] = child.Line
			continue
		} else if n.Kind == yaml.MappingNode {
			at = append(slices.Clip(path), n.Content[i-1].Value)
		}
		if err := repeatedKey(file, child, at, depth+1); err != nil {
			return err
		}
	}
	return nil
}
