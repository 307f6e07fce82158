// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"math"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// rates are per second. What is nil is not known.
type rates struct {
	In        *float64 `json:"in"`
	Out       *float64 `json:"out"`
	Limited   *float64 `json:"limited"`
	Dropped   *float64 `json:"dropped"`
	Refused   *float64 `json:"refused"`
	WireBytes *float64 `json:"wire_bytes"`
	RawBytes  *float64 `json:"raw_bytes"`

	out map[string]*float64 // by signal, of a source that tells several apart
}

// totals are about all components together.
type totals struct {
	in, limited, out, dropped, wire, perSample, received *float64
	queued                                               int64
	destinations                                         int // that out is about
	targets                                              counts
	usage                                                usage
}

func newTotals(before, now *reading, g *graph) totals {
	t := totals{usage: newUsage(before, now)}
	var paid *float64 // for by what goes over the wire
	for s, flow := range now.flows {
		t.queued += max(0, flow.QueuedBytes)
		t.targets.add(flow.Targets)
		f := flowBetween(before, now, s)
		if s.Kind != component.KindExporter {
			t.dropped = plus(t.dropped, f.Dropped)
		}
		switch s.Kind {
		case component.KindReceiver:
			t.in = plus(t.in, f.In)
			t.received = plus(t.received, f.WireBytes)
		case component.KindExporter:
			t.wire = plus(t.wire, f.WireBytes)
			if f.WireBytes != nil {
				paid = plus(paid, f.Out)
			}
		}
	}
	// What our own exporters bring to our own receivers has come in once already.
	if own := ownTraffic(before, now); own != nil && t.in != nil {
		t.in = number(max(0, *t.in-*own))
	}
	t.limited = limitedOf(before, now, g)
	t.out, t.destinations = outOf(before, now, g)
	t.dropped = plus(t.dropped, lostOf(before, now, g))
	if t.wire != nil && paid != nil && *paid > 0 && allWell(before, now) {
		t.perSample = number(*t.wire / *paid)
	}
	return t
}

// allWell tells whether each request of the stretch was taken at once: only then its bytes are those of what was acknowledged.
func allWell(before, now *reading) bool {
	for s := range now.deliveries {
		for _, d := range destinationsOf(before, now, s) {
			if d.LostRate != nil && *d.LostRate > 0 || d.RetryRate != nil && *d.RetryRate > 0 {
				return false
			}
		}
	}
	return true
}

// counts are targets by state.
type counts struct {
	Healthy   int `json:"healthy"`
	Failing   int `json:"failing"`
	Unknown   int `json:"unknown"`
	Dropped   int `json:"dropped"`
	Elsewhere int `json:"elsewhere"`
}

func (c *counts) add(states map[string]int) {
	c.Healthy += states[inspect.Healthy]
	c.Failing += states[inspect.Failing]
	c.Unknown += states[inspect.Unknown]
	c.Dropped += states[stateDropped]
	c.Elsewhere += states["elsewhere"]
}

// Lines that the history of everything and that of a destination have in common.
const (
	lineDropped = "dropped"
	lineWire    = "wire_bytes"
)

// lines are what the history consists of.
var lines = [...]struct {
	name, unit string
	of         func(*totals) *float64
}{
	{"in", perSecond, func(t *totals) *float64 { return t.in }},
	{"limited", perSecond, func(t *totals) *float64 { return t.limited }},
	{"out", perSecond, func(t *totals) *float64 { return t.out }},
	{lineDropped, perSecond, func(t *totals) *float64 { return t.dropped }},
	{lineWire, "B/s", func(t *totals) *float64 { return t.wire }},
	{"bytes_per_sample", "B", func(t *totals) *float64 { return t.perSample }},
	{"cpu", "cores", func(t *totals) *float64 { return t.usage.cores }},
	{"rss", "B", func(t *totals) *float64 { return t.usage.rss }},
	{"gc", "ratio", func(t *totals) *float64 { return t.usage.gcRatio }},
	{healthFailing, viewTargets, func(t *totals) *float64 { return number(float64(t.targets.Failing)) }},
	{"queued", "B", func(t *totals) *float64 { return number(float64(t.queued)) }},
}

// ringSize is an hour.
const ringSize = int(time.Hour / sampleInterval)

// ring is the last hour: 34 KiB, and 8.4 KiB for each destination.
type ring struct {
	mu     sync.Mutex
	next   int
	full   bool
	times  [ringSize]int64
	values [ringSize][len(lines)]float64 // NaN is unknown
	trails map[trailKey]*trail           // of destinations
}

func (r *ring) add(at time.Time, t totals, destinations map[trailKey]*destinationJSON) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times[r.next] = at.Unix()
	for i := range lines {
		r.values[r.next][i] = math.NaN()
		if v := lines[i].of(&t); v != nil {
			r.values[r.next][i] = *v
		}
	}
	r.addTrails(r.next, destinations)
	r.next++
	if r.next == ringSize {
		r.next, r.full = 0, true
	}
}

// span is where the hour begins and how many points it has; r.mu is held.
func (r *ring) span() (first, n int) {
	if r.full {
		return r.next, ringSize
	}
	return 0, r.next
}

// latestJSON is what the history will have next, by name: the same numbers as in the rest of an overview.
type latestJSON map[string]*float64

func latest(t *totals) latestJSON {
	out := make(latestJSON, len(lines))
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

func (c *console) history(*http.Request) (any, error) {
	r := &c.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	first, n := r.span()
	out := historyJSON{Interval: sampleInterval.Seconds(), Times: make([]int64, n)}
	for i := range lines {
		line := lineJSON{Name: lines[i].name, Unit: lines[i].unit, Values: make([]*float64, n)}
		for j := range n {
			at := (first + j) % ringSize
			out.Times[j] = r.times[at]
			if v := r.values[at][i]; !math.IsNaN(v) {
				line.Values[j] = &v
			}
		}
		out.Series = append(out.Series, line)
	}
	return out, nil
}
