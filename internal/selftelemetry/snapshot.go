// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package selftelemetry

import (
	"slices"
	"strings"
	"time"
)

// suffixes are what the page may append to a declared name: the unit, and _total for counters. It does so if a reader
// sets without_units or without_type_suffix to false, and did so by default in older Collectors.
var suffixes = []string{
	"", "_total",
	"_bytes", "_bytes_total",
	"_seconds", "_seconds_total",
	"_milliseconds", "_milliseconds_total",
	"_ratio",
}

// Snapshot is the content of a metrics page at one time.
type Snapshot struct {
	// Time is when the page was read.
	Time time.Time

	samples map[string][]sample // by name in the page
}

type sample struct {
	labels []label
	value  float64
}

type label struct{ name, value string }

// Matcher selects series by one label.
type Matcher label

// Is selects the series whose label has the value. An absent label has the value "".
func Is(label, value string) Matcher { return Matcher{name: label, value: value} }

// Sum adds up the series of a metric that all matchers select. It is 0 if there are none. The name may be given with or
// without _total.
func (s *Snapshot) Sum(name string, match ...Matcher) float64 {
	var sum float64
	for _, v := range s.SumBy(name, "", match...) {
		sum += v
	}
	return sum
}

// SumBy is Sum for each value of a label.
func (s *Snapshot) SumBy(name, label string, match ...Matcher) map[string]float64 {
	sums := make(map[string]float64)
	for _, series := range s.find(name) {
		if !slices.ContainsFunc(match, func(m Matcher) bool { return series.label(m.name) != m.value }) {
			sums[series.label(label)] += series.value
		}
	}
	return sums
}

// find returns the series with the shortest suffix, because a page may contain x and x_bytes, which differ.
func (s *Snapshot) find(name string) []sample {
	name = strings.TrimSuffix(name, "_total")
	for _, suffix := range suffixes {
		if series, ok := s.samples[name+suffix]; ok {
			return series
		}
	}
	return nil
}

func (s *sample) label(name string) string {
	for _, l := range s.labels {
		if l.name == name {
			return l.value
		}
	}
	return ""
}
