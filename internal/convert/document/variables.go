// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// Variable is one of vmagent's files and flags. Those that Compose fills in may say what they are where nobody sets them.
var Variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`%\{([A-Za-z_][A-Za-z0-9_]*(?::-[^}%]*)?)\}`)
})

// vmagent fills in variables before it reads a file, so that they may be where a percent sign or a brace is wrong: `limit: %{LIMIT}` is no YAML. They are read
// between two signs that mean nothing, to nobody.
const hidden, shown = "\ue000", "\ue001"

func hideVariables(text []byte) []byte {
	if !bytes.Contains(text, []byte("%{")) {
		return text
	}
	return Variable().ReplaceAll(text, []byte(hidden+"$1"+shown))
}

// HideVariables puts signs in place of what begins and ends a variable, for parsers that a percent sign says something to.
func HideVariables(text string) string { return string(hideVariables([]byte(text))) }

// ShowVariables takes that back.
func ShowVariables(text string) string {
	if !strings.Contains(text, hidden) {
		return text
	}
	return strings.NewReplacer(hidden, "%{", shown, "}").Replace(text)
}
