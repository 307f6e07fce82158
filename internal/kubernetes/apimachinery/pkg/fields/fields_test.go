// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"testing"
)

// Which selectors are valid was determined with the original.
func TestParseSelector(t *testing.T) {
	for _, valid := range []string{
		"", ",", "a=b", "a==b", "a!=b", "a=", "=b", "a=b,c!=d", ",a=b,", `a=b\,c`, `a=b\=c`, `a=\\`, "spec.nodeName=node-1", " a = b ", "a!b=c", "a=!b",
	} {
		if got, err := ParseSelector(valid); err != nil || string(got) != valid {
			t.Errorf("%q: %v", valid, err)
		}
	}
	for _, invalid := range []string{"a", "a=b,c", "a=b=c", "a===b", `a=\b`, `a=b\`, `a\`, "!", "a!b"} {
		if _, err := ParseSelector(invalid); err == nil {
			t.Errorf("%q is no selector", invalid)
		}
	}
}
