// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package fields checks field selectors. The API evaluates them.
package fields

import (
	"fmt"
	"strings"
)

// A Selector is a valid selector.
type Selector string

// ParseSelector parses terms such as field=value, field==value and field!=value, separated by commas. In a value, \, =
// and commas are escaped by \.
func ParseSelector(selector string) (Selector, error) {
	for _, term := range terms(selector) {
		if term == "" {
			continue
		}
		value, ok := valueOf(term)
		if !ok {
			return "", fmt.Errorf("invalid selector: '%s'; can't understand '%s'", selector, term)
		}
		if err := checkValue(value); err != nil {
			return "", err
		}
	}
	return Selector(selector), nil
}

// terms splits a selector at commas that are not escaped.
func terms(selector string) (all []string) {
	start, escaped := 0, false
	for i, c := range selector {
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == ',':
			all = append(all, selector[start:i])
			start = i + 1
		}
	}
	return append(all, selector[start:])
}

// valueOf returns the text after the first operator.
func valueOf(term string) (string, bool) {
	for i := range term {
		for _, operator := range []string{"!=", "==", "="} {
			if value, ok := strings.CutPrefix(term[i:], operator); ok {
				return value, true
			}
		}
	}
	return "", false
}

func checkValue(value string) error {
	escaped := false
	for _, c := range value {
		switch {
		case escaped && !strings.ContainsRune(`\,=`, c):
			return fmt.Errorf(`invalid field selector: invalid escape sequence: \%c`, c)
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == ',' || c == '=':
			return fmt.Errorf("invalid field selector: unescaped character in value: %c", c)
		}
	}
	if escaped {
		return fmt.Errorf(`invalid field selector: invalid escape sequence: \`) //nolint:perfsprint // as the others
	}
	return nil
}
