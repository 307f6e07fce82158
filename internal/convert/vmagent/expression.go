// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"regexp/syntax"
	"strings"
)

// group makes an expression a part of a longer one: its alternatives stay together and its flags apply to nothing else,
// in a group without a number. The ends of its text are no longer the ends of the whole, so anchors there, which have no
// effect in a rule, are removed.
func group(regex string) string {
	regex = strings.TrimPrefix(regex, "^")
	if shorter, ok := strings.CutSuffix(regex, "$"); ok && !strings.HasSuffix(shorter, `\`) {
		regex = shorter
	}
	if parsed, err := syntax.Parse(regex, syntax.Perl|syntax.DotNL); err == nil {
		if start, end := unanchor(parsed, true, true); start || end {
			regex = parsed.String()
		}
	}
	if strings.Contains(regex, "|") || strings.HasPrefix(regex, "(?") {
		return "(?:" + regex + ")"
	}
	return regex
}

// unanchor removes the anchors at the start and at the end of an expression, and reports which it found.
func unanchor(expr *syntax.Regexp, start, end bool) (atStart, atEnd bool) {
	switch expr.Op {
	case syntax.OpBeginText:
		atStart = start
	case syntax.OpEndText:
		atEnd = end
	case syntax.OpCapture, syntax.OpAlternate, syntax.OpConcat:
		for i, part := range expr.Sub {
			all := expr.Op != syntax.OpConcat
			s, e := unanchor(part, start && (all || i == 0), end && (all || i == len(expr.Sub)-1))
			atStart, atEnd = atStart || s, atEnd || e
		}
		return atStart, atEnd
	}
	if atStart || atEnd {
		expr.Op = syntax.OpEmptyMatch
	}
	return atStart, atEnd
}
