// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package report holds the results of measurements, and turns them into tables
// and charts. It measures nothing: the same result gives the same report.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Result is all that one command measured.
type Result struct {
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	Taken    time.Time `json:"taken"`
	Command  string    `json:"command"`
	Machine  Machine   `json:"machine"`
	Workload Workload  `json:"workload"`
	// Axis names what differs between points of a growth curve: targets, samples or churn.
	Axis string `json:"axis,omitempty"`
	Rows []Row  `json:"rows"`
	// Skipped tells which agents were not run, and why.
	Skipped []string `json:"skipped,omitempty"`
}

// Machine is where it was measured.
type Machine struct {
	Cores  int    `json:"cores"`
	Model  string `json:"model"`
	Memory int64  `json:"memory"` // bytes
	Kernel string `json:"kernel"`
	Go     string `json:"go"` // of the farm, the sink and the runner
}

// Workload is what all agents had to do.
type Workload struct {
	// Work tells it in words where it is not pages that are scraped; then all but Window is empty.
	Work        string  `json:"work,omitempty"`
	Page        string  `json:"page"`
	About       string  `json:"about,omitempty"`  // what is special about it, in words
	Bodies      string  `json:"bodies,omitempty"` // the best coding that targets know
	Targets     int     `json:"targets"`
	Interval    float64 `json:"interval"`      // seconds
	Window      float64 `json:"window"`        // seconds
	RTT         float64 `json:"rtt,omitempty"` // seconds to the destination and back
	Change      float64 `json:"change"`
	Churn       float64 `json:"churn"`
	Cardinality int     `json:"cardinality"`
	// Of one page, as the farm tells.
	Samples int `json:"samples"`
	Bytes   int `json:"bytes"`
	Gzipped int `json:"gzipped"`
}

// Row is one agent at one point.
type Row struct {
	Agent   string  `json:"agent"`
	Title   string  `json:"title"`
	Party   string  `json:"party"`
	Version string  `json:"version"`
	At      float64 `json:"at,omitempty"` // on the axis
	Runs    []Run   `json:"runs"`
	// Failed tells why runs are missing.
	Failed []string `json:"failed,omitempty"`
}

// Run is one measurement.
type Run struct {
	Seconds float64 `json:"seconds"` // length of the window
	Samples int64   `json:"samples"` // of targets' pages that arrived in it, less `_created`
	// Scraped are those that were served in it. They come more evenly than what arrives, in requests.
	Scraped int64   `json:"scraped,omitempty"`
	CPU     float64 `json:"cpu"`  // seconds, user and system, of the process tree
	Farm    float64 `json:"farm"` // the farm's CPU seconds
	Sink    float64 `json:"sink"` // the sink's
	// Yard is what one unit of the yardstick took, in CPU seconds: how fast the machine was.
	Yard float64 `json:"yard,omitempty"`

	RSSMean  int64 `json:"rss_mean"` // bytes
	RSSPeak  int64 `json:"rss_peak"`
	AnonMean int64 `json:"anon_mean"`

	Wire     int64 `json:"wire"` // bytes, headers and framing included
	Raw      int64 `json:"raw"`  // bytes of messages, decompressed
	Requests int64 `json:"requests"`

	// Of the whole run.
	Series        int64   `json:"series"`
	Created       int64   `json:"created"`
	Own           int64   `json:"own"`
	Stale         int64   `json:"stale"`
	Exemplars     int64   `json:"exemplars"`
	Refused       int64   `json:"refused"` // requests the sink could not decode
	Aborted       int64   `json:"aborted"` // scrapes that the agent aborted
	ScrapeSeconds float64 `json:"scrape_seconds"`
	Scrapes       int     `json:"scrapes"`
	Served        int64   `json:"served"`
	Lost          int64   `json:"lost"`
	Duplicated    int64   `json:"duplicated"`
	Altered       int64   `json:"altered"`
	Unknown       int64   `json:"unknown"`
	// Unchecked tells that the agent sends nothing: Samples are those it scraped.
	Unchecked bool `json:"unchecked,omitempty"`
}

// PerSample divides by the samples of the window.
func (r *Run) PerSample(v float64) float64 { return v / float64(max(1, r.Samples)) }

// Complete tells that each sample arrived once, with its value.
func (r *Run) Complete() bool { return r.Lost+r.Duplicated+r.Altered+r.Unknown == 0 }

// CPUPerMillion is CPU seconds per million samples, which is microseconds per
// sample: of those scraped in the window, or of those that arrived in it if not all did in the end.
func (r *Run) CPUPerMillion() float64 {
	if r.Scraped > 0 && r.Complete() {
		return r.CPU / float64(r.Scraped) * 1e6
	}
	return r.PerSample(r.CPU) * 1e6
}

// yardUnit is what a unit of the yardstick takes on a machine of even speed, in seconds.
const yardUnit = 1e-3

// EvenCPUPerMillion is CPUPerMillion as it would be on a machine where a unit
// of the yardstick takes a millisecond: what neighbours took is divided out.
func (r *Run) EvenCPUPerMillion() float64 {
	if r.Yard == 0 {
		return 0
	}
	return r.CPUPerMillion() * yardUnit / r.Yard
}

// Spread is the least, the middle and the greatest of a figure over the runs.
type Spread struct{ Min, Median, Max float64 }

// Of computes the spread of a figure.
func (r *Row) Of(figure func(*Run) float64) Spread {
	values := make([]float64, len(r.Runs))
	for i := range r.Runs {
		values[i] = figure(&r.Runs[i])
	}
	slices.Sort(values)
	n := len(values)
	if n == 0 {
		return Spread{}
	}
	return Spread{values[0], (values[(n-1)/2] + values[n/2]) / 2, values[n-1]}
}

// unchecked tells that the row's agent sends nothing.
func (r *Row) unchecked() bool { return len(r.Runs) > 0 && r.Runs[0].Unchecked }

// Apart is how far the runs lie apart in a figure, as a share of their median.
func (r *Row) Apart(figure func(*Run) float64) float64 {
	s := r.Of(figure)
	if s.Median == 0 {
		return 0
	}
	return (s.Max - s.Min) / s.Median
}

// Load reads a result.
func Load(file string) (*Result, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read result: %w", err)
	}
	var r Result
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("cannot read result %s: %w", file, err)
	}
	return &r, nil
}

// LoadAll reads all results of a directory. Files of other measurements, which
// have no workload, are left alone.
func LoadAll(dir string) ([]*Result, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []*Result
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read result: %w", err)
		}
		if !bytes.Contains(body, []byte(`"workload": {`)) {
			continue
		}
		r, err := Load(file)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Save writes the result.
func (r *Result) Save(file string) error {
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write result: %w", err)
	}
	return os.WriteFile(file, append(body, '\n'), 0o644)
}
