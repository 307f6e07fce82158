// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Stream is the result of `bench stream`.
type Stream struct {
	Name    string    `json:"name"`
	Title   string    `json:"title"`
	Taken   time.Time `json:"taken"`
	Command string    `json:"command"`
	Machine Machine   `json:"machine"`
	// Cells are variants at points, with client and server in one process.
	Cells []StreamCell `json:"cells"`
	// Pipelines are pairs of Collectors, one sending to the other.
	Pipelines []StreamPipeline `json:"pipelines"`
	Wire      []StreamWire     `json:"wire"`
	Encodings []StreamEncoding `json:"encodings,omitempty"`
	// Earlier are the earlier runs of parts that this run did not measure.
	Earlier []StreamEarlier `json:"earlier,omitempty"`
	Skipped []string        `json:"skipped,omitempty"`
}

// StreamPoint is an amount of work and a latency.
type StreamPoint struct {
	Batches    int `json:"batches"`
	Items      int `json:"items"` // per batch
	Attributes int `json:"attributes"`
	RTT        int `json:"rtt"` // round trip in milliseconds
	// Pipelined points omit the variants that wait for each response.
	Pipelined bool `json:"pipelined,omitempty"`
}

// Delay returns the latency in one direction.
func (p StreamPoint) Delay() time.Duration { return time.Duration(p.RTT) * time.Millisecond / 2 }

func (p StreamPoint) String() string {
	return fmt.Sprintf("%d batches of %d spans with %d attributes, %d ms round trip", p.Batches, p.Items, p.Attributes, p.RTT)
}

// StreamCell is one variant at one point.
type StreamCell struct {
	Variant string      `json:"variant"`
	Title   string      `json:"title"`
	Party   string      `json:"party"`
	Point   StreamPoint `json:"point"`
	Runs    []StreamRun `json:"runs"`
	Failed  []string    `json:"failed,omitempty"`
	// Then is the value in the proposal of 2019, if it has one.
	Then *StreamRun `json:"then,omitempty"`
}

// StreamRun is one measurement.
type StreamRun struct {
	Batches   int     `json:"batches"`
	Wall      float64 `json:"wall"` // seconds until all batches were acknowledged
	CPU       float64 `json:"cpu"`  // user and system seconds of client and server together
	RSSPeak   int64   `json:"rss_peak,omitempty"`
	Files     int64   `json:"rss_files,omitempty"` // resident bytes of files at the end, mostly of the binary
	Allocated int64   `json:"allocated,omitempty"` // bytes
}

// Rate returns batches per second.
func (r *StreamRun) Rate() float64 { return float64(r.Batches) / r.Wall }

// CPUPerBatch returns CPU milliseconds per batch.
func (r *StreamRun) CPUPerBatch() float64 { return 1e3 * r.CPU / float64(max(1, r.Batches)) }

// StreamPipeline is a pair of Collectors at one size of requests.
type StreamPipeline struct {
	Exporter string `json:"exporter"` // otlp or otlpstream
	// Compression is empty for the exporter's default.
	Compression string `json:"compression,omitempty"`

	Items int `json:"items"` // per request
	RTT   int `json:"rtt"`
	// Offered is the rate of requests per second; 0 means as many as were accepted.
	Offered int                 `json:"offered"`
	Runs    []StreamPipelineRun `json:"runs"`
	Failed  []string            `json:"failed,omitempty"`
}

// StreamPipelineRun is one measurement.
type StreamPipelineRun struct {
	Seconds  float64 `json:"seconds"`
	Items    int64   `json:"items"`     // that reached the second Collector's pipeline
	Sender   float64 `json:"sender"`    // CPU seconds of the first Collector
	Receiver float64 `json:"receiver"`  // CPU seconds of the second one
	SentRSS  int64   `json:"sent_rss"`  // peak of the first one in bytes
	TakenRSS int64   `json:"taken_rss"` // peak of the second one

	SentFiles  int64 `json:"sent_files,omitempty"` // resident bytes of files at the end
	TakenFiles int64 `json:"taken_files,omitempty"`
}

// CPUPerItem returns CPU microseconds of both Collectors per item.
func (r *StreamPipelineRun) CPUPerItem() float64 {
	return 1e6 * (r.Sender + r.Receiver) / float64(max(1, r.Items))
}

// Rate returns items per second.
func (r *StreamPipelineRun) Rate() float64 { return float64(r.Items) / r.Seconds }

// StreamWire is the size of metrics on the wire.
type StreamWire struct {
	Exporter string `json:"exporter"`
	// Batched is set if a batch processor preceded the exporter.
	Batched bool  `json:"batched"`
	Targets int   `json:"targets"`
	Points  int64 `json:"points"` // that arrived
	Bytes   int64 `json:"bytes"`  // that the exporter sent, with framing
}

// PerPoint returns bytes per data point.
func (w *StreamWire) PerPoint() float64 { return float64(w.Bytes) / float64(max(1, w.Points)) }

// spreadOf returns the spread of a figure.
func spreadOf[T any](runs []T, figure func(*T) float64) Spread {
	values := make([]float64, len(runs))
	for i := range runs {
		values[i] = figure(&runs[i])
	}
	return spread(values)
}

func spread(values []float64) Spread {
	n := len(values)
	if n == 0 {
		return Spread{}
	}
	slices.Sort(values)
	return Spread{values[0], (values[(n-1)/2] + values[n/2]) / 2, values[n-1]}
}

// ratios divides each of the first runs by the second run next to it in time.
func ratios[T any](a, b []T, figure func(*T) float64) Spread {
	var values []float64
	for i := range min(len(a), len(b)) {
		if under := figure(&b[i]); under > 0 {
			values = append(values, figure(&a[i])/under)
		}
	}
	return spread(values)
}

// cell returns a variant at a point, nil if it has no runs.
func (s *Stream) cell(variant string, p StreamPoint) *StreamCell {
	for i := range s.Cells {
		if c := &s.Cells[i]; c.Variant == variant && c.Point == p && len(c.Runs) > 0 {
			return c
		}
	}
	return nil
}

// points returns the points that were measured.
func (s *Stream) points() []StreamPoint {
	var all []StreamPoint
	for i := range s.Cells {
		if p := s.Cells[i].Point; !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// StreamEarlier is an earlier run whose parts are in a result.
type StreamEarlier struct {
	Parts   []string  `json:"parts"`
	Taken   time.Time `json:"taken"`
	Command string    `json:"command"`
	Machine string    `json:"machine"`
}

// KeepStream copies the parts that were not measured from the existing result.
func KeepStream(dir string, s *Stream, missing []string) error {
	before, err := loadStream(dir)
	if before == nil || err != nil {
		return err
	}
	kept := StreamEarlier{Taken: before.Taken, Command: before.Command, Machine: before.Machine.Model}
	for _, part := range missing {
		found := false
		switch part {
		case "cells":
			s.Cells, found = before.Cells, len(before.Cells) > 0
		case "pipelines":
			s.Pipelines, found = before.Pipelines, len(before.Pipelines) > 0
		case "wire":
			s.Wire, found = before.Wire, len(before.Wire) > 0
		case "encodings":
			s.Encodings, found = before.Encodings, len(before.Encodings) > 0
		}
		if found {
			kept.Parts = append(kept.Parts, part)
			s.Skipped = slices.DeleteFunc(s.Skipped, func(why string) bool { return strings.HasPrefix(why, part+":") })
		}
	}
	s.Earlier = before.Earlier
	for i := range s.Earlier { // parts measured since are no longer those of an earlier run
		s.Earlier[i].Parts = slices.DeleteFunc(s.Earlier[i].Parts, func(part string) bool { return !slices.Contains(kept.Parts, part) })
		kept.Parts = slices.DeleteFunc(kept.Parts, func(part string) bool { return slices.Contains(s.Earlier[i].Parts, part) })
	}
	s.Earlier = slices.DeleteFunc(append(s.Earlier, kept), func(e StreamEarlier) bool { return len(e.Parts) == 0 })
	return nil
}

// WriteStream writes the result and its reports.
func WriteStream(dir string, s *Stream) error {
	body, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, s.Name+".json"), append(body, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("cannot write result: %w", err)
	}
	return s.render(dir)
}

// RenderStream renders the reports of a result again, if it exists.
func RenderStream(dir string) error {
	s, err := loadStream(dir)
	if s == nil || err != nil {
		return err
	}
	return s.render(dir)
}

func (s *Stream) render(dir string) error {
	for suffix, text := range map[string]string{".md": s.Markdown(), ".svg": s.SVG()} {
		if err := os.WriteFile(filepath.Join(dir, s.Name+suffix), []byte(text), 0o644); err != nil {
			return fmt.Errorf("cannot write report: %w", err)
		}
	}
	return nil
}

func loadStream(dir string) (*Stream, error) {
	body, err := os.ReadFile(filepath.Join(dir, "stream.json"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	s := new(Stream)
	if err == nil {
		err = json.Unmarshal(body, s)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read result: %w", err)
	}
	return s, nil
}
