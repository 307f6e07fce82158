// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package history keeps the last hour of a dozen numbers, of everything and of each destination.
package history

import (
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/balance"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
)

// Lines of both histories, of everything and of a destination.
const (
	lineDropped = "dropped"
	lineWire    = "wire_bytes"
)

const samplesPerSecond = "samples/s"

// lines are the numbers that the history consists of.
var lines = [...]struct {
	name, unit string
	of         func(*balance.Totals) *float64
}{
	{"in", samplesPerSecond, func(t *balance.Totals) *float64 { return t.In }},
	{"limited", samplesPerSecond, func(t *balance.Totals) *float64 { return t.Limited }},
	{"out", samplesPerSecond, func(t *balance.Totals) *float64 { return t.Out }},
	{lineDropped, samplesPerSecond, func(t *balance.Totals) *float64 { return t.Dropped }},
	{lineWire, "B/s", func(t *balance.Totals) *float64 { return t.WireBytes }},
	{"bytes_per_sample", "B", func(t *balance.Totals) *float64 { return t.PerSample }},
	{"cpu", "cores", func(t *balance.Totals) *float64 { return t.Process.CPUCores }},
	{"rss", "B", func(t *balance.Totals) *float64 { return t.Process.RSS }},
	{"gc", "ratio", func(t *balance.Totals) *float64 { return t.Process.GCRatio }},
	{"failing", "targets", func(t *balance.Totals) *float64 { return known.Number(float64(t.Targets.Failing)) }},
	{"queued", "B", func(t *balance.Totals) *float64 { return known.Number(float64(t.Queued)) }},
}

// points is the number of points in an hour.
const points = int(time.Hour / meter.Interval)

// An Hour holds the numbers of the last hour: 34 KiB, and 8.4 KiB for each destination.
type Hour struct {
	mu     sync.Mutex
	next   int
	full   bool
	times  [points]int64
	values [points][len(lines)]float64 // NaN is unknown
	trails trails                      // of destinations
}

// Add adds a point.
func (h *Hour) Add(span meter.Span, t balance.Totals) {
	each := destinations(span)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.times[h.next] = span.Now.At.Unix()
	for i := range lines {
		h.values[h.next][i] = math.NaN()
		if v := lines[i].of(&t); v != nil {
			h.values[h.next][i] = *v
		}
	}
	h.trails.add(h.next, each)
	h.next++
	if h.next == points {
		h.next, h.full = 0, true
	}
}

// span returns the index of the first point and the number of points. The caller must hold h.mu.
func (h *Hour) span() (first, n int) {
	if h.full {
		return h.next, points
	}
	return 0, h.next
}

// Latest returns the numbers that the history would add now, by name: the same as in the rest of an overview.
func Latest(t *balance.Totals) map[string]*float64 {
	out := make(map[string]*float64, len(lines))
	for i := range lines {
		out[lines[i].name] = lines[i].of(t)
	}
	return out
}

type historyJSON struct {
	Interval float64    `json:"interval_seconds"`
	Times    []int64    `json:"times"`
	Series   []lineJSON `json:"series"`
}

type lineJSON struct {
	Name   string     `json:"name"`
	Unit   string     `json:"unit"`
	Values []*float64 `json:"values"`
}

// Everything answers with the history of all components together.
func (h *Hour) Everything(*http.Request) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first, n := h.span()
	out := historyJSON{Interval: meter.Interval.Seconds(), Times: make([]int64, n)}
	for i := range lines {
		line := lineJSON{Name: lines[i].name, Unit: lines[i].unit, Values: make([]*float64, n)}
		for j := range n {
			at := (first + j) % points
			out.Times[j] = h.times[at]
			if v := h.values[at][i]; !math.IsNaN(v) {
				line.Values[j] = &v
			}
		}
		out.Series = append(out.Series, line)
	}
	return out, nil
}
