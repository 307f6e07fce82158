// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
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

// bareVariable matches an environment variable in the form of collectors before 0.104, and the dollar signs before it;
// two of them are an escaped one. wholeVariable matches a value that consists of a variable, which may have lower-case
// letters, too.
var (
	bareVariable  = lazyregexp.New(`(\$+)([A-Z][A-Z0-9_]+)`)
	wholeVariable = lazyregexp.New(`^(\$)([A-Za-z_][A-Za-z0-9_]*)$`)
)

// FormerVariables returns the values that were variables for collectors before 0.104 and are plain text for a current
// one, which does not report that.
func FormerVariables(name string, text []byte) []report.Finding {
	if !bytes.ContainsRune(text, '$') {
		return nil
	}
	root, err := document.ParseLoosely(text)
	if err != nil || root == nil {
		return nil
	}
	c := &collector{in: &input.Input{Text: text}, file: name, becomes: "write "}
	c.bareVariables(root, "", "")
	return slices.DeleteFunc(c.in.Report.Findings, func(f report.Finding) bool { return f.Kind != report.Changed })
}

// bareVariables puts variables without braces into braces. A current collector takes them for plain text, and silently
// finds nothing at an address or with a selector that contains one.
func (c *collector) bareVariables(n *yaml.Node, path, key string) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			c.bareVariables(n.Content[i+1], strings.TrimPrefix(path+"."+key, "."), key)
		}
	case yaml.SequenceNode:
		for i, child := range n.Content {
			c.bareVariables(child, path+"["+strconv.Itoa(i)+"]", key)
		}
	case yaml.ScalarNode:
		c.bareVariable(n, path, key)
	}
}

func (c *collector) bareVariable(n *yaml.Node, path, key string) {
	if !strings.Contains(n.Value, "$") || strings.HasPrefix(path, "receivers.") && strings.Contains(path, ".external_labels.") { // Prometheus' code expands these itself
		return
	}
	say := func(kind report.Outcome, text string) {
		c.in.Report.Add(report.Finding{Kind: kind, File: c.file, Line: n.Line, Path: path, Text: text})
	}
	whole, of := wholeVariable().MatchString(n.Value), bareVariable()
	if whole {
		of = wholeVariable()
	}
	n.Value = of.ReplaceAllStringFunc(n.Value, func(found string) string {
		name := strings.TrimLeft(found, "$")
		dollars := len(found) - len(name)
		switch {
		case dollars%2 == 0, bytes.Contains(c.in.Text, []byte("?P<"+name+">")): // it may refer to a group of a regular expression
			return found
		case (!whole || name != strings.ToUpper(name)) && slices.Contains(promconfig.SecretKeys, key):
			say(report.Note, "`"+found+"` is text, and was a variable before 0.104: if it is one, write `${env:"+name+"}`")
			return found
		}
		say(report.Changed, "`$"+name+"` was a variable before 0.104, and a collector takes it for text now: "+c.becomes+"`${env:"+name+"}`")
		return found[:dollars-1] + "${env:" + name + "}"
	})
}
