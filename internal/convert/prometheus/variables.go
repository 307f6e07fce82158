// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// shellVariable matches variables that shells and similar tools expand, and that a collector would.
var shellVariable = lazyregexp.New(`\$(?:\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?)\}|([A-Z][A-Z0-9_]+))`)

// isOfRule reports whether the dollar signs in a value of a rule are Prometheus' own: those of groups, by number or by a
// name in the rule's expression, and the end of a text. No expression matches anything after that end.
func isOfRule(rule *yaml.Node, value string) bool {
	regex := ""
	if n := document.Find(rule, "regex"); n != nil {
		regex = n.Value
	}
	for _, found := range bracedName().FindAllStringSubmatch(value, -1) {
		if !strings.Contains(regex, "(?P<"+found[1]+">") && !strings.Contains(regex, "(?<"+found[1]+">") {
			return false
		}
	}
	return true
}

var bracedName = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}`)

// noteVariables reports what looks like a variable to be replaced before Prometheus reads the file.
func noteVariables(in *input.Input, n *yaml.Node, path, key string) {
	switch {
	case key == "external_labels": // dollar signs of Prometheus
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if (key == "regex" || key == "replacement") && isOfRule(n, n.Content[i+1].Value) {
				continue
			}
			noteVariables(in, n.Content[i+1], strings.TrimPrefix(path+"."+key, "."), key)
		}
	case n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			noteVariables(in, item, path+"["+strconv.Itoa(i)+"]", key)
		}
	case n.Kind == yaml.ScalarNode:
		for _, found := range shellVariable().FindAllStringSubmatch(n.Value, -1) {
			if found[1] == "" && found[0] != n.Value && slices.Contains(promconfig.SecretKeys, key) {
				continue // secrets contain all kinds of characters
			}
			in.Report.Add(report.Finding{Kind: report.Note, File: in.Name(), Line: n.Line, Path: path, Text: found[0] + " stays as it is, for Prometheus reads no variables here: if something fills it in " +
				"beforehand, convert what that makes, or write ${env:" + found[1] + found[2] + "} in the result"})
		}
	}
}
