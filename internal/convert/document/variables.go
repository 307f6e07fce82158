// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// Variable is one of vmagent's files and flags. Those that Compose fills in may say what they are where nobody sets them, which may be
// another variable: this finds the inner one.
var Variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`%\{([A-Za-z_][A-Za-z0-9_]*(?::-[^}%]*)?)\}`)
})

// vmagent fills in variables before it reads a file, so that they may be where a percent sign or a brace is wrong: `limit: %{LIMIT}` is no YAML. They are read
// between two signs that mean nothing, to nobody.
const hidden, shown = "\ue000", "\ue001"

func hideVariables(text []byte) []byte {
	for bytes.Contains(text, []byte("%{")) {
		found := Variable().ReplaceAll(text, []byte(hidden+"$1"+shown))
		if bytes.Equal(found, text) {
			break
		}
		text = found // those that had one of these in them
	}
	return text
}

// HideVariables puts signs in place of what begins and ends a variable, for parsers that a percent sign says something to.
func HideVariables(text string) string { return string(hideVariables([]byte(text))) }

// ShowVariables takes that back.
func ShowVariables(text string) string { return show(text, "%{") }

// Environment has variables as a collector writes them.
func Environment(text string) string { return show(HideVariables(text), "${env:") }

func show(text, begin string) string {
	if !strings.Contains(text, hidden) {
		return text
	}
	return strings.NewReplacer(hidden, begin, shown, "}").Replace(text)
}

// IsVariable tells a text that is one variable, and nothing beside it.
func IsVariable(text string) bool {
	rest, found := strings.CutPrefix(HideVariables(text), hidden)
	for depth := 1; found; {
		at := strings.IndexAny(rest, hidden+shown)
		if at < 0 {
			return false
		}
		if rest = rest[at:]; strings.HasPrefix(rest, hidden) {
			depth++
		} else {
			depth--
		}
		if rest = rest[len(hidden):]; depth == 0 {
			return rest == ""
		}
	}
	return false
}
