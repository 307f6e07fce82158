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

func save(t *testing.T, dir string, r Result) {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, r.Name+".json"), body, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheReadmeShowsTheWorstFleetFirst(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, agents ...Row) {
		save(t, dir, Result{Name: name, Title: "The fleet " + name, Rows: agents})
	}
	of := func(agent string, cpu float64) Row {
		return Row{Agent: agent, Runs: []Run{{Seconds: 1, Samples: 1e6, Scraped: 1e6, CPU: cpu, RSSMean: 5e7, Wire: 4e6}}}
	}
	write("own", of(ours, 1), of(theirs, 4))
	write("mixed", of(ours, 3), of(theirs, 4))
	write("tls", of(ours, 1)) // not comparable without the rival
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

func TestTheReadmeShowsEachFormatBesideItsRival(t *testing.T) {
	dir := t.TempDir()
	of := func(agent, title string, wire int64) Row {
		return Row{Agent: agent, Title: title, Runs: []Run{{Seconds: 1, Samples: 1e6, Scraped: 1e6, CPU: 0.5, Wire: wire, Lost: 7}}}
	}
	save(t, dir, Result{Name: "formats", Title: "Pages", Rows: []Row{
		of(ours, "two with zstd", 3.2e6), of("godwit-rw1", "one with zstd", 5.1e6), of("godwit-rw2-snappy", "two with snappy", 5.9e6),
		of(theirs, "the rival", 9.7e6),
		{Agent: "prometheus-rw2", Title: "not run"},
	}})
	text, ok, err := FormatsTable(dir)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	want := "| Godwit | **two with zstd** | 3.20 | 0.50 | 7 |\n" +
		"| VictoriaMetrics | **one with zstd** | 5.10 | 0.50 | 7 |\n" +
		"| VictoriaMetrics | the rival | 9.70 | 0.50 | 7 |\n" +
		"| Prometheus, Mimir, Thanos | **two with snappy** | 5.90 | 0.50 | 7 |\n\n"
	if !strings.HasSuffix(text, want) {
		t.Errorf("got\n%s", text)
	}
	if text, ok, err := FormatsTable(t.TempDir()); text != "" || ok || err != nil {
		t.Errorf("without a result: %q, %v, %v", text, ok, err)
	}
}
