// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func streamSample() *Stream {
	p := StreamPoint{Batches: 800, Items: 500, Attributes: 10, RTT: 2}
	run := func(wall, cpu float64) []StreamRun {
		return []StreamRun{{Batches: 800, Wall: wall, CPU: cpu, RSSPeak: 50e6}, {Batches: 800, Wall: 2 * wall, CPU: 2 * cpu, RSSPeak: 60e6}}
	}
	pipeline := func(items int64, cpu float64) []StreamPipelineRun {
		return []StreamPipelineRun{{Seconds: 2, Items: items, Sender: cpu, Receiver: cpu}}
	}
	return &Stream{
		Name: "stream", Title: "Streams & <unary>", Command: "make bench-stream",
		Cells: []StreamCell{
			{Variant: "unary", Title: "Unary", Party: "godwit", Point: p, Runs: run(8, 4), Then: &StreamRun{Batches: 800, Wall: 11.8, CPU: 11.5}},
			{Variant: "stream-1", Title: "Stream", Party: "godwit", Point: p, Runs: run(2, 2), Then: &StreamRun{Batches: 800, Wall: 7, CPU: 11.1}},
			{Variant: "websocket", Title: "WebSocket", Party: "godwit", Point: p, Runs: run(2, 3)},
			{Variant: "otlp", Title: "Collector", Party: "collector", Point: p, Failed: []string{"cannot start\nat all"}},
		},
		Pipelines: []StreamPipeline{
			{Exporter: "otlp", Items: 100, RTT: 200, Runs: pipeline(1000, 1)},
			{Exporter: "otlpstream", Items: 100, RTT: 200, Runs: pipeline(9000, 1)},
			{Exporter: "otlp", Items: 10, Offered: 5, Runs: pipeline(1000, 1)},
			{Exporter: "otlpstream", Items: 10, Offered: 5, Runs: pipeline(1000, 2)},
		},
		Wire: []StreamWire{{Exporter: "otlp", Points: 10, Bytes: 100}, {Exporter: "otlpstream", Points: 10, Bytes: 50}},
	}
}

func TestGoalsCompareNeighbours(t *testing.T) {
	got := map[string]string{}
	for _, g := range streamSample().Goals() {
		got[g.What] = number(g.Got.Median) + " " + g.verdict()
	}
	for what, want := range map[string]string{
		"batches/s, stream to unary one by one: 500 spans a batch, 2 ms":                            "4 reached",
		"batches/s, stream to unary with 10 in flight: 500 spans a batch, 2 ms":                     "0 not measured",
		"CPU, WebSocket to gRPC stream: 500 spans a batch, 2 ms":                                    "1.50 **missed**",
		"spans/s, Collectors over otlpstream to otlp: 100 spans a request, 200 ms":                  "9 reached",
		"CPU per span, Collectors over otlpstream to otlp: 10 spans a request, default compression": "2 **missed**",
		"bytes of metrics, otlpstream to otlp with gzip: a request per scrape":                      "0.50 reached",
	} {
		if got[what] != want {
			t.Errorf("%s: %q, want %q", what, got[what], want)
		}
	}
}

func TestGoalsJudgeCPUWhereThereIsMoreOfIt(t *testing.T) {
	s := streamSample()
	longer := s.Cells[2]
	longer.Point.Batches, longer.Point.Pipelined = 10*longer.Point.Batches, true
	s.Cells = append(s.Cells, longer)
	var judged []string
	for _, g := range s.Goals() {
		if strings.HasPrefix(g.What, "CPU, WebSocket") {
			judged = append(judged, g.What)
		}
	}
	if want := []string{"CPU, WebSocket to gRPC stream: 500 spans a batch, 2 ms, 8000 batches"}; !slices.Equal(judged, want) {
		t.Errorf("judged %q, want %q", judged, want)
	}
}

func TestStreamTablesHaveWhatWasMeasuredAndWhatThereWas(t *testing.T) {
	text := streamSample().Markdown()
	for _, want := range []string{
		"## 800 batches of 500 spans with 10 attributes, 2 ms round trip",
		"| Stream | 300 (200–400) | 4 | 3.75 (2.50–5) | 0.50 | 55 (50–60) | 114 | 1.69 | 13.9 | 0.97 |",
		"| Collector | - | - | - | - | - |  |  |  |  |",
		"- Failed: otlp, 800 batches of 500 spans with 10 attributes, 2 ms round trip: cannot start\n",
		"| otlpstream, default compression | 100 | 200 | 4500 |", "`make bench-stream`",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestStreamChartIsWellFormed(t *testing.T) {
	for _, s := range []*Stream{streamSample(), {Title: "nothing"}} {
		svg := s.SVG()
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Error(svg)
		}
	}
}

func TestStreamResultsComeBack(t *testing.T) {
	dir := t.TempDir()
	if err := RenderStream(dir); err != nil {
		t.Errorf("nothing measured is nothing to render: %v", err)
	}
	if err := WriteStream(dir, streamSample()); err != nil {
		t.Fatal(err)
	}
	first, _ := os.ReadFile(filepath.Join(dir, "stream.md"))
	os.Remove(filepath.Join(dir, "stream.md"))
	if err := RenderStream(dir); err != nil {
		t.Fatal(err)
	}
	again, _ := os.ReadFile(filepath.Join(dir, "stream.md"))
	if len(again) == 0 || string(first) != string(again) {
		t.Error("rendered again it is not the same")
	}
}

// The streaming counterpart of TestReportsAreWhatTheResultsGive.
func TestStreamReportsAreWhatTheResultGives(t *testing.T) {
	const results = "../results"
	s, err := loadStream(results)
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		t.Fatal("there is no result: run `make bench-stream`")
	}
	for suffix, want := range map[string]string{".md": s.Markdown(), ".svg": s.SVG()} {
		got, err := os.ReadFile(filepath.Join(results, s.Name+suffix))
		if err != nil || string(got) != want {
			t.Errorf("%s%s is not what %s.json gives: run `make report` (%v)", s.Name, suffix, s.Name, err)
		}
	}
}

// TestStreamReportHasRSSWithoutFiles checks that both tables have the column if the result has resident bytes of files.
func TestStreamReportHasRSSWithoutFiles(t *testing.T) {
	s := streamSample()
	if text := s.Markdown(); strings.Contains(text, "without files") {
		t.Error("nobody has measured what is said in\n", text)
	}
	for i := range s.Cells {
		for j := range s.Cells[i].Runs {
			s.Cells[i].Runs[j].Files = 20e6
		}
	}
	for i := range s.Pipelines {
		s.Pipelines[i].Runs[0].SentRSS, s.Pipelines[i].Runs[0].SentFiles = 70e6, 29e6
		s.Pipelines[i].Runs[0].TakenRSS, s.Pipelines[i].Runs[0].TakenFiles = 70e6, 28e6
	}
	text := s.Markdown()
	for _, want := range []string{"| peak RSS MB | without files | 2019", "| 55 (50–60) | 35 (30–40) |", "| without files, first | second |", "| 70 | 70 | 41 | 42 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
