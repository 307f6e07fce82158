// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"strings"
	"testing"
)

func TestHandoffTablesHaveAColumnPerNumberOfProducers(t *testing.T) {
	h := &Handoff{Name: "handoff", Title: "Hand-off", Rows: []HandoffRow{
		{Way: "channel", Title: "channel", Producers: 1, Rate: []float64{20, 30}, Consumer: []float64{500}, Process: []float64{900}},
		{Way: "ring", Title: "ring", Producers: 1, Rate: []float64{10}, Consumer: []float64{50}, Process: []float64{90}},
		{Way: "channel", Title: "channel", Producers: 5, Rate: []float64{21}, Consumer: []float64{510}, Process: []float64{910}},
		{Way: "ring", Title: "ring", Producers: 5, Rate: []float64{11}, Consumer: []float64{51}, Process: []float64{91}},
	}}
	text := h.Markdown()
	for _, want := range []string{"| Producers | 1 | 5 |", "| channel | 25 (20–30) | 21 |", "| ring | 50 | 51 |", "| ring | 90 | 91 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if svg := h.SVG(); !strings.Contains(svg, "5 producers") || strings.Contains(svg, "NaN") {
		t.Error(svg)
	}
	dir := t.TempDir()
	if err := WriteHandoff(dir, h); err != nil {
		t.Fatal(err)
	}
	if err := RenderHandoff(dir); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(dir + "/handoff.md"); err != nil || string(again) != text {
		t.Errorf("rendered again it is not the same: %v", err)
	}
}

func TestHandoffReportsAreWhatTheResultGives(t *testing.T) {
	const results = "../results"
	h, err := loadHandoff(results)
	if err != nil {
		t.Fatal(err)
	}
	if h == nil {
		t.Skip("`make bench-handoff` has not been run")
	}
	for suffix, want := range map[string]string{".md": h.Markdown(), ".svg": h.SVG()} {
		if got, err := os.ReadFile(results + "/handoff" + suffix); err != nil || string(got) != want {
			t.Errorf("handoff%s is not what handoff.json gives: run `make report` (%v)", suffix, err)
		}
	}
}
