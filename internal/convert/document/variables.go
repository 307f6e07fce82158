// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// Variable matches a variable in files and flags of vmagent. A variable of Compose may have a default, which may be
// another variable: then the inner one is matched.
var Variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`%\{([A-Za-z_][A-Za-z0-9_]*(?::-[^}%]*)?)\}`)
})

// vmagent replaces variables before it parses a file, so they may be in places where a percent sign or a brace is not
// valid YAML, as in `limit: %{LIMIT}`. They are parsed between two characters of the private use area.
const hidden, shown = "\ue000", "\ue001"

func hideVariables(text []byte) []byte {
	for bytes.Contains(text, []byte("%{")) {
		found := Variable().ReplaceAll(text, []byte(hidden+"$1"+shown))
		if bytes.Equal(found, text) {
			break
		}
		text = found // now the variables that contained one of these
	}
	return text
}

// HideVariables replaces the delimiters of variables, for parsers that give percent signs a meaning.
func HideVariables(text string) string { return string(hideVariables([]byte(text))) }

// ShowVariables undoes HideVariables.
func ShowVariables(text string) string { return show(text, "%{") }

// Environment converts variables to a collector's form.
func Environment(text string) string { return show(HideVariables(text), "${env:") }

func show(text, begin string) string {
	if !strings.Contains(text, hidden) {
		return text
	}
	return strings.NewReplacer(hidden, begin, shown, "}").Replace(text)
}

// IsVariable reports whether a text consists of a single variable.
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
