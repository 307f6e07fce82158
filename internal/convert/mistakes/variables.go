// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package mistakes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	// reference matches a reference to a variable, and the dollar signs before it; two of them are an escaped one.
	reference = regexp.MustCompile(`(\$+)\{(?:env:)?([^}:]*)(:-)?[^}]*\}`)
	variable  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	// addresses are keys without whose value a component would silently connect elsewhere, or nowhere.
	addresses = []string{"endpoint", "endpoints", "url", "targets"}
	// ruleKeys are keys whose values contain dollar signs of Prometheus.
	ruleKeys = []string{"replacement", "regex", "target_label"}
)

// variables finds references to invalid names, and to unset variables that would leave an address empty.
func (m *finder) variables(n *yaml.Node, path []string) error {
	if !strings.Contains(n.Value, "${") || len(path) == 0 {
		return nil
	}
	key := path[len(path)-1]
	for _, match := range reference.FindAllStringSubmatch(n.Value, -1) {
		dollars, name, hasDefault := len(match[1]), match[2], match[3] != ""
		if dollars%2 == 0 || m.isReplaced(path) {
			continue // the dollar sign is escaped, or the value is replaced
		}
		_, isSet := m.environment(name)
		rule := slices.Contains(ruleKeys, key)
		switch {
		case isSet, hasDefault, strings.Contains(strings.TrimPrefix(match[0][dollars+len("{"):], "env:"), ":"):
			// a reference to another provider, such as file:
		case rule && !strings.Contains(match[0], "env:"):
			return m.at(n, path, fmt.Sprintf("`%s` is read as an environment variable: where Prometheus has a `$`, write `$$`, here `$%s`",
				match[0][dollars-1:], match[0][dollars-1:]))
		case !variable.MatchString(name):
			return m.at(n, path, fmt.Sprintf("`%s` is read as an environment variable, and no name of one: write `$$` for a `$`", match[0]))
		case slices.Contains(addresses, key):
			return m.at(n, path, fmt.Sprintf("the environment variable %s is not set: set it, or give a default, as in `${env:%s:-value}`", name, name))
		}
	}
	return nil
}

// said returns the text that a value stands for, and which variable it is from if it consists of one. The value of
// composed texts is not known.
func (m *finder) said(value string) (text, of string) {
	if !strings.Contains(value, "$") {
		return value, ""
	}
	inner, found := strings.CutPrefix(value, "${")
	inner, ends := strings.CutSuffix(inner, "}")
	name, fallback, _ := strings.Cut(strings.TrimPrefix(inner, "env:"), ":-")
	if !found || !ends || !variable.MatchString(name) {
		return "", ""
	}
	if text, isSet := m.environment(name); isSet {
		return text, ", of the environment variable " + name + ","
	}
	if strings.ContainsAny(fallback, "$}") {
		return "", ""
	}
	return fallback, ""
}
