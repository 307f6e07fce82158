// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package report holds the results of measurements, and renders them as tables and charts. It measures nothing: the
// same result gives the same report.
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
	// Axis is the quantity that differs between the points of a growth curve: targets, samples or churn.
	Axis string `json:"axis,omitempty"`
	Rows []Row  `json:"rows"`
	// Skipped are the agents that were not run, with the reason.
	Skipped []string `json:"skipped,omitempty"`
}

// Machine describes the machine.
type Machine struct {
	Cores  int    `json:"cores"`
	Model  string `json:"model"`
	Memory int64  `json:"memory"` // bytes
	Kernel string `json:"kernel"`
	Go     string `json:"go"` // of the farm, the sink and the runner
}

// Workload is the work of all agents.
type Workload struct {
	// Work describes a workload that does not scrape pages; then only Window is set besides.
	Work        string  `json:"work,omitempty"`
	Page        string  `json:"page"`
	About       string  `json:"about,omitempty"`  // what is special about it
	Bodies      string  `json:"bodies,omitempty"` // the best coding that targets support
	Targets     int     `json:"targets"`
	Interval    float64 `json:"interval"`      // seconds
	Window      float64 `json:"window"`        // seconds
	RTT         float64 `json:"rtt,omitempty"` // round trip to the destination in seconds
	Change      float64 `json:"change"`
	Churn       float64 `json:"churn"`
	Cardinality int     `json:"cardinality"`
	// Of one page, from the farm.
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
	At      float64 `json:"at,omitempty"` // the value on the axis
	Runs    []Run   `json:"runs"`
	// Failed are the errors of runs that are missing.
	Failed []string `json:"failed,omitempty"`
}

// Run is one measurement.
type Run struct {
	Seconds float64 `json:"seconds"` // length of the window
	Samples int64   `json:"samples"` // of targets, that arrived in the window, without `_created`
	// Scraped are the samples served in the window. They are spread more evenly than arrivals, which come in requests.
	Scraped int64   `json:"scraped,omitempty"`
	CPU     float64 `json:"cpu"`  // user and system seconds of the process tree
	Farm    float64 `json:"farm"` // CPU seconds of the farm
	Sink    float64 `json:"sink"` // of the sink
	// Yard is the CPU seconds per unit of the yardstick: the speed of the machine.
	Yard float64 `json:"yard,omitempty"`

	RSSMean  int64 `json:"rss_mean"` // bytes
	RSSPeak  int64 `json:"rss_peak"`
	AnonMean int64 `json:"anon_mean"`

	Wire     int64 `json:"wire"` // bytes, with headers and framing
	Raw      int64 `json:"raw"`  // bytes of decompressed messages
	Requests int64 `json:"requests"`

	// Of the whole run.
	Series        int64   `json:"series"`
	Created       int64   `json:"created"`
	Own           int64   `json:"own"`
	Stale         int64   `json:"stale"`
	Exemplars     int64   `json:"exemplars"`
	Refused       int64   `json:"refused"` // requests that the sink could not decode
	Aborted       int64   `json:"aborted"` // scrapes that the agent aborted
	ScrapeSeconds float64 `json:"scrape_seconds"`
	Scrapes       int     `json:"scrapes"`
	Served        int64   `json:"served"`
	Lost          int64   `json:"lost"`
	Duplicated    int64   `json:"duplicated"`
	Altered       int64   `json:"altered"`
	Unknown       int64   `json:"unknown"`
	// Unchecked is set if the agent sends nothing: then Samples are those that it scraped.
	Unchecked bool `json:"unchecked,omitempty"`
}

// PerSample divides by the number of samples in the window.
func (r *Run) PerSample(v float64) float64 { return v / float64(max(1, r.Samples)) }

// Complete reports whether each sample arrived once, with its value.
func (r *Run) Complete() bool { return r.Lost+r.Duplicated+r.Altered+r.Unknown == 0 }

// CPUPerMillion returns CPU seconds per million samples, which is microseconds per sample: of samples scraped in the
// window, or of those that arrived in it if some never did.
func (r *Run) CPUPerMillion() float64 {
	if r.Scraped > 0 && r.Complete() {
		return r.CPU / float64(r.Scraped) * 1e6
	}
	return r.PerSample(r.CPU) * 1e6
}

// yardUnit is the CPU time of a unit of the yardstick on a reference machine, in seconds.
const yardUnit = 1e-3

// EvenCPUPerMillion is CPUPerMillion on a machine where a unit of the yardstick takes a millisecond: it removes the
// effect of other load.
func (r *Run) EvenCPUPerMillion() float64 {
	if r.Yard == 0 {
		return 0
	}
	return r.CPUPerMillion() * yardUnit / r.Yard
}

// Spread is the minimum, the median and the maximum of a figure over the runs.
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

// unchecked reports whether the row's agent sends nothing.
func (r *Row) unchecked() bool { return len(r.Runs) > 0 && r.Runs[0].Unchecked }

// Apart returns the range of a figure over the runs, as a share of its median.
func (r *Row) Apart(figure func(*Run) float64) float64 {
	s := r.Of(figure)
	if s.Median == 0 {
		return 0
	}
	return (s.Max - s.Min) / s.Median
}

// Load reads a result from a file.
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

// LoadAll reads all results in a directory. It skips files of other measurements, which have no workload.
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
