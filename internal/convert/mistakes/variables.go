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
	// reference is one to a variable, and the dollars before it: two are one of the user's own.
	reference = regexp.MustCompile(`(\$+)\{(?:env:)?([^}:]*)(:-)?[^}]*\}`)
	variable  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	// Values without which a component would go elsewhere, or nowhere, without a word.
	addresses = []string{"endpoint", "endpoints", "url", "targets"}
	// Values in which Prometheus has dollars of its own.
	ruleKeys = []string{"replacement", "regex", "target_label"}
)

// variables finds references to those of the environment that are none, or without which an address would be empty.
func (m *finder) variables(n *yaml.Node, path []string) error {
	if !strings.Contains(n.Value, "${") || len(path) == 0 {
		return nil
	}
	key := path[len(path)-1]
	for _, match := range reference.FindAllStringSubmatch(n.Value, -1) {
		dollars, name, hasDefault := len(match[1]), match[2], match[3] != ""
		if dollars%2 == 0 || m.isReplaced(path) {
			continue // it stands for itself, or for nothing
		}
		_, isSet := m.environment(name)
		rule := slices.Contains(ruleKeys, key)
		switch {
		case isSet, hasDefault, strings.Contains(strings.TrimPrefix(match[0][dollars+len("{"):], "env:"), ":"):
			// another provider's, such as file:
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

// said is what a value is, and whose, if it is that of one variable. Of what is put together nothing is known.
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
