// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"regexp"
	resyntax "regexp/syntax"
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// Forms of the processor's patterns: a regular expression, a negated pattern, and one that any value matches.
const (
	regexPattern = "regex:"
	notPattern   = "not:"
	anyPattern   = "*"
)

// patternOf converts a condition on a label to a pattern of the processor; not all can be expressed. An absent label is
// an empty one for vmagent. For the processor, an absent label matches all patterns that begin with not, and no other.
func patternOf(m matcher) (pattern string, ok bool) {
	expr, err := regexp.Compile("^(?s:" + m.regex + ")$")
	if err != nil {
		return "", false
	}
	switch glob, plain := globOf(m.regex); {
	case m.regex == "" && m.not, m.regex == ".+" && !m.not: // the label must be present
		return anyPattern, true
	case m.regex == "", m.regex == ".+": // the label must be absent
		return notPattern + anyPattern, true
	case m.regex == ".*" && !m.not:
		return "", true
	case expr.MatchString(""):
		return "", false
	case plain:
		pattern = glob
	default:
		pattern = regexPattern + m.regex
	}
	if m.not {
		pattern = notPattern + pattern
	}
	return pattern, true
}

// histogramParts are the suffixes of a histogram's series. The processor sees the histogram as one metric.
var histogramParts = []string{"_bucket", "_sum", "_count"}

// hasHistogramPart matches a suffix where it can end a name, as in a_(sum|count).
var hasHistogramPart = lazyregexp.New(`[_(|](bucket|sum|count)(\W|$)`)

// namePatternOf is patternOf for the name of a series. If the name ends in a suffix of histograms, the pattern matches
// both the histogram and a metric with the whole name. The rest of the expression must not match arbitrary text at its
// end.
func namePatternOf(m matcher) (pattern string, ok bool) {
	part := slices.IndexFunc(histogramParts, func(part string) bool { return strings.HasSuffix(m.regex, part) })
	if part < 0 {
		if hasHistogramPart().MatchString(m.regex) {
			return "", false
		}
		return patternOf(m)
	}
	if m.not {
		return "", false // the histogram has other series, too
	}
	name := strings.TrimSuffix(m.regex, histogramParts[part])
	parsed, err := resyntax.Parse(name, resyntax.Perl)
	if err != nil || openEnded(parsed) || hasHistogramPart().MatchString(name) {
		return "", false
	}
	return regexPattern + name + "(" + histogramParts[part] + ")?", true
}

// oneOfNames merges the matches that consist of a metric name only into one, so that a series matches only one of them.
func oneOfNames(all []document.Table) []document.Table {
	var names []string
	var first int
	others := []document.Table{}
	for _, match := range all {
		pattern := document.Find(match.Node, "metric")
		if pattern == nil || len(match.Node.Content) != 2 || strings.HasPrefix(pattern.Value, notPattern) || strings.Contains(pattern.Value, "$") {
			others = append(others, match)
			continue
		}
		if names == nil {
			first = len(others)
		}
		if !slices.Contains(names, pattern.Value) {
			names = append(names, pattern.Value)
		}
	}
	if len(names) == 0 {
		return all
	}
	if len(names) > 1 {
		for i, name := range names {
			expr, ok := strings.CutPrefix(name, regexPattern)
			if !ok {
				expr = strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, ".*")
			}
			names[i] = expr
		}
		names[0] = regexPattern + strings.Join(names, "|")
	}
	return slices.Insert(others, first, document.NewTable().Set("metric", names[0]))
}

// openEnded reports whether an expression may match more text at its end.
func openEnded(expr *resyntax.Regexp) bool {
	switch expr.Op {
	case resyntax.OpLiteral, resyntax.OpCharClass:
		return false
	case resyntax.OpCapture:
		return openEnded(expr.Sub[0])
	case resyntax.OpConcat:
		return openEnded(expr.Sub[len(expr.Sub)-1])
	case resyntax.OpAlternate:
		return slices.ContainsFunc(expr.Sub, openEnded)
	default:
		return true
	}
}

// globOf converts an expression to a pattern with *, if it says no more than that.
func globOf(expr string) (string, bool) {
	var glob strings.Builder
	for rest := expr; rest != ""; {
		switch {
		case strings.HasPrefix(rest, ".*"):
			glob.WriteByte('*')
			rest = rest[2:]
		case rest[0] == '\\' && len(rest) > 1 && rest[1] != '*' && strings.ContainsRune(`.+()|[]{}^$?\`, rune(rest[1])):
			glob.WriteByte(rest[1])
			rest = rest[2:]
		case strings.ContainsRune(`.*+?()|[]{}^$\`, rune(rest[0])):
			return "", false
		default:
			glob.WriteByte(rest[0])
			rest = rest[1:]
		}
	}
	return glob.String(), !strings.HasPrefix(glob.String(), regexPattern) && !strings.HasPrefix(glob.String(), notPattern)
}
