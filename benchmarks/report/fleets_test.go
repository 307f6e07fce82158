// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheReadmeShowsTheWorstFleetFirst(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, agents ...Row) {
		body, err := json.Marshal(Result{Name: name, Title: "The fleet " + name, Rows: agents})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	of := func(agent string, cpu float64) Row {
		return Row{Agent: agent, Runs: []Run{{Seconds: 1, Samples: 1e6, Scraped: 1e6, CPU: cpu, RSSMean: 5e7, Wire: 4e6}}}
	}
	write("own", of(ours, 1), of(theirs, 4))
	write("mixed", of(ours, 3), of(theirs, 4))
	write("tls", of(ours, 1)) // without the rival there is nothing to compare
	text, err := fleets(dir)
	if err != nil {
		t.Fatal(err)
	}
	worst, best := strings.Index(text, "The fleet mixed"), strings.Index(text, "The fleet own")
	if worst < 0 || best < worst || strings.Contains(text, "tls") || !strings.Contains(text, "3 / 4 = **0.75**") {
		t.Errorf("got\n%s", text)
	}
	if text, err := fleets(t.TempDir()); text != "" || err != nil {
		t.Errorf("without results: %q, %v", text, err)
	}
}
