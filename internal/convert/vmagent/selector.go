// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// A matcher is a condition on a label.
type matcher struct {
	label, regex string
	// not means that it must not match, literal that it matches exactly one value.
	not, literal bool
}

var (
	selectorName = lazyregexp.New(`^\s*([a-zA-Z_:][a-zA-Z0-9_:.]*)?\s*`)
	selectorPart = lazyregexp.New(`^\s*([a-zA-Z_][a-zA-Z0-9_.]*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`" + `)(\s+or\s+|\s*,|\s*$)`)
)

// parseSelector parses a series selector such as name{label="value"}, and returns the matchers of each side of `or`.
func parseSelector(text string) ([][]matcher, bool) {
	head := selectorName().FindStringSubmatch(text)
	var name []matcher
	if head[1] != "" {
		name = []matcher{{label: "__name__", regex: regexp.QuoteMeta(head[1]), literal: true}}
	}
	rest := strings.TrimSpace(text[len(head[0]):])
	if rest == "" {
		return [][]matcher{name}, len(name) > 0
	}
	if !strings.HasPrefix(rest, "{") || !strings.HasSuffix(rest, "}") {
		return nil, false
	}
	all := [][]matcher{name}
	more := false // after `or`
	for rest = strings.TrimSpace(rest[1 : len(rest)-1]); rest != ""; {
		part := selectorPart().FindStringSubmatch(rest)
		if part == nil {
			return nil, false
		}
		value := part[3]
		if value[0] == '\'' {
			value = `"` + strings.ReplaceAll(strings.ReplaceAll(value[1:len(value)-1], `\'`, "'"), `"`, `\"`) + `"`
		}
		plain, err := strconv.Unquote(value)
		if err != nil {
			return nil, false
		}
		m := matcher{label: part[1], regex: plain, not: strings.HasPrefix(part[2], "!")}
		if !strings.HasSuffix(part[2], "~") {
			m.regex, m.literal = regexp.QuoteMeta(plain), true
		}
		all[len(all)-1] = append(all[len(all)-1], m)
		if more = strings.TrimSpace(part[4]) == "or"; more {
			all = append(all, slices.Clone(name))
		}
		rest = rest[len(part[0]):]
	}
	return all, !more && len(all[0]) > 0
}
