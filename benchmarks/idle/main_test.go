// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The table in the agent's README is rendered from the result.
func TestReadmeShowsTheResult(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile(results)
	if err != nil {
		t.Fatalf("%v: run `make bench-idle`", err)
	}
	var variants []variant
	if err := json.Unmarshal(text, &variants); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	want := "<!-- " + marker + ":begin -->\n" + table(variants) + "<!-- " + marker + ":end -->"
	if !strings.Contains(string(page), want) {
		t.Errorf("%s does not show %s: run `make bench-idle`", readme, results)
	}
}
