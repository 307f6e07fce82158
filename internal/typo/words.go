// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package typo

import (
	"cmp"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	wrongType = regexp.MustCompile(`'([^'\n]+)' (?:` +
		`expected type '([^'\n]+)', got unconvertible type '([^'\n]+)'` +
		`|(expected a map or struct), got "([^"\n]+)"` +
		`|(source data must be an array or slice), got (\w+)` +
		`|(time: [^\n]*))`)
	index = regexp.MustCompile(`\[(\d+)\]`)
	named = regexp.MustCompile(`\[([^\]]*[^\]\d][^\]]*)\]`)
)

const aDuration = "a duration such as 30s or 1m30s"

// Plainly rewrites a decoder's errors about values of wrong types: what they must be, in terms of YAML, and where they
// are.
func Plainly(text string) string {
	return wrongType.ReplaceAllStringFunc(text, func(said string) string {
		match := wrongType.FindStringSubmatch(said)
		var want, got string
		there := match[3] + match[5] + match[7]
		switch {
		case match[2] != "":
			want, got = inYAML(match[2]), inYAML(match[3])
		case match[4] != "":
			want, got = inYAML("map"), inYAML(match[5])
		case match[6] != "":
			want, got = inYAML("slice"), inYAML(match[7])
		default:
			want = aDuration
		}
		path := Steps(match[1])
		said = "`" + strings.Join(path, "::") + "` must be " + want
		if got != "" && got != want {
			said += ", not " + got
		}
		return said + placeOf(func(n *yaml.Node) bool { return mayBe(n, there) }, path)
	})
}

// mayBe reports whether a decoder may have got a Go type from a value: a reference to a variable can become anything.
func mayBe(n *yaml.Node, name string) bool {
	switch {
	case name == "" || n.Kind == yaml.AliasNode || strings.Contains(n.Value, "${"):
		return true
	case strings.HasPrefix(name, "map"):
		return n.Kind == yaml.MappingNode
	case strings.HasPrefix(name, "[]"), name == "slice":
		return n.Kind == yaml.SequenceNode
	}
	return n.Tag == map[string]string{"string": "!!str", "int": "!!int", "float64": "!!float", "bool": "!!bool"}[name]
}

// Steps splits a decoder's name of a value for PlaceOf: keys of mappings, and indices of lists in brackets.
func Steps(name string) []string {
	name = named.ReplaceAllString(name, ".$1")
	return strings.Split(index.ReplaceAllString(name, ".[$1]"), ".")
}

// inYAML describes a Go type in terms of YAML.
func inYAML(name string) string {
	switch {
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"):
		return "a whole number"
	case strings.HasPrefix(name, "float"):
		return "a number"
	case strings.HasPrefix(name, "map"):
		return "a mapping"
	case strings.HasPrefix(name, "[]"), name == "slice":
		return "a list"
	}
	return cmp.Or(map[string]string{"string": "a text", "bool": "true or false", "time.Duration": aDuration}[name], "a `"+name+"`")
}
