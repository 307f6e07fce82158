// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package attribute

import (
	"slices"
	"strings"
)

// glob reports whether name matches pattern, in which * stands for any text and ? for any byte.
func glob(pattern, name string) bool {
	star, mark := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0: // extend the last star by one byte
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// MatchAny reports whether a name matches one of the patterns, in which * stands for any text and ? for any byte.
func MatchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return glob(p, name) })
}
