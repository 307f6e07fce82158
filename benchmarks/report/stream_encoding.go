// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
)

// The encodings in comparisons: no export with our build and with the other one, ours, and the smallest known one of
// others.
const (
	EncodingNone         = "handed on to nobody"
	EncodingNoneOfOthers = "handed on to nobody, by the other build"
	EncodingOurs         = "otlpstream"
	EncodingSTEF         = "stef, zstd"
)

// StreamEncoding is one way to send metrics from one Collector to another.
type StreamEncoding struct {
	Name string `json:"name"`
	// Other is set if it was measured with the other build, whose cost without an export is subtracted.
	Other bool `json:"other,omitempty"`
	// Batched is set if requests had several scrapes.
	Batched bool                `json:"batched"`
	Targets int                 `json:"targets"`
	Runs    []StreamEncodingRun `json:"runs"`
	Failed  []string            `json:"failed,omitempty"`
}

// StreamEncodingRun is one measurement.
type StreamEncodingRun struct {
	Points int64 `json:"points"`
	Bytes  int64 `json:"bytes"` // that the first Collector sent, with framing
	// Sender and Receiver are CPU seconds of the first and the second Collector.
	Sender   float64 `json:"sender"`
	Receiver float64 `json:"receiver"`
}

// PerPoint returns bytes per data point.
func (r *StreamEncodingRun) PerPoint() float64 { return float64(r.Bytes) / float64(max(1, r.Points)) }

func (s *Stream) encoding(name string, batched bool) *StreamEncoding {
	for i := range s.Encodings {
		if e := &s.Encodings[i]; e.Name == name && e.Batched == batched && len(e.Runs) > 0 {
			return e
		}
	}
	return nil
}

// idle returns the first Collector's CPU nanoseconds per point without an export.
func (s *Stream) idle(e *StreamEncoding) float64 {
	name := EncodingNone
	if e.Other {
		name = EncodingNoneOfOthers
	}
	none := s.encoding(name, e.Batched)
	if none == nil {
		return 0
	}
	return spreadOf(none.Runs, func(r *StreamEncodingRun) float64 { return 1e9 * r.Sender / float64(max(1, r.Points)) }).Median
}

// costs return CPU nanoseconds per point at both ends, without what idle returns.
func (s *Stream) costs(e *StreamEncoding) (sender, receiver, both func(*StreamEncodingRun) float64) {
	idle := s.idle(e)
	sender = func(r *StreamEncodingRun) float64 { return 1e9*r.Sender/float64(max(1, r.Points)) - idle }
	receiver = func(r *StreamEncodingRun) float64 { return 1e9 * r.Receiver / float64(max(1, r.Points)) }
	return sender, receiver, func(r *StreamEncodingRun) float64 { return sender(r) + receiver(r) }
}

func (s *Stream) encodingGoals() (goals []StreamGoal) {
	for _, batched := range []bool{false, true} {
		ours, stef := s.encoding(EncodingOurs, batched), s.encoding(EncodingSTEF, batched)
		if ours == nil {
			continue
		}
		goals = append(goals, StreamGoal{
			What: "bytes a data point over otlpstream: " + scrapesEach(batched), Want: 2.8, AtMost: true,
			Got: spreadOf(ours.Runs, (*StreamEncodingRun).PerPoint), Known: true,
		})
		if stef != nil {
			goals = append(goals, StreamGoal{
				What: "CPU a data point at both ends, otlpstream to STEF: " + scrapesEach(batched), Want: 0.7, AtMost: true,
				Got: s.cost(ours, stef), Known: true,
			})
		}
	}
	return goals
}

// cost returns the ratio of the CPU times of two encodings, run by run.
func (s *Stream) cost(e, other *StreamEncoding) Spread {
	_, _, mine := s.costs(e)
	_, _, theirs := s.costs(other)
	var values []float64
	for i := range min(len(e.Runs), len(other.Runs)) {
		if under := theirs(&other.Runs[i]); under > 0 {
			values = append(values, mine(&e.Runs[i])/under)
		}
	}
	return spread(values)
}

func scrapesEach(batched bool) string {
	if batched {
		return "16 scrapes a request"
	}
	return "a request per scrape"
}

func (s *Stream) encodingTable(b *strings.Builder) {
	if len(s.Encodings) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Metrics from one Collector to another\n\n%d node exporters of which a third of the series move as those of machines do; otlp in, nop out. "+
		"CPU is what is left when that of the first without an exporter is taken off.\n\n", s.Encodings[0].Targets)
	b.WriteString(header("Between them", "", "B a data point", "CPU ns/point, both", "first", "second", "× STEF"))
	for i := range s.Encodings {
		e := &s.Encodings[i]
		if e.Name == EncodingNone || e.Name == EncodingNoneOfOthers {
			continue
		}
		sender, receiver, both := s.costs(e)
		against := "-"
		if stef := s.encoding(EncodingSTEF, e.Batched); stef != nil && len(e.Runs) > 0 {
			against = number(s.cost(e, stef).Median)
		}
		of := func(figure func(*StreamEncodingRun) float64) string {
			return cell(spreadOf(e.Runs, figure), len(e.Runs))
		}
		b.WriteString(row(e.Name, scrapesEach(e.Batched), of((*StreamEncodingRun).PerPoint), of(both), of(sender), of(receiver), against))
	}
}
