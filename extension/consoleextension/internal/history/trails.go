// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/delivery"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/internal/inorder"
)

const itemsPerSecond = "items/s"

// destinationLines are the numbers that the history of a destination consists of.
var destinationLines = [...]struct {
	name, unit string
	of         func(*delivery.Destination) *float64
}{
	{"taken", itemsPerSecond, func(d *delivery.Destination) *float64 { return d.TakenRate }},
	{"sent", itemsPerSecond, func(d *delivery.Destination) *float64 { return d.SentRate }},
	{lineDropped, itemsPerSecond, func(d *delivery.Destination) *float64 { return d.LostRate }},
	{"waiting", "items", func(d *delivery.Destination) *float64 { return known.Number(float64(d.Waiting)) }},
	{lineWire, "B/s", func(d *delivery.Destination) *float64 { return d.WireRate }},
	{"ack_seconds", "s", ackNow},
}

// maxTrails limits the destinations with a history. Another one gets a history when one of these has been gone for an
// hour.
const maxTrails = 32

// trailKey identifies a destination. If two of an exporter have the same name, only the first has a history.
type trailKey struct{ exporter, signal, destination string }

// A trail is the last hour of one destination, 8.4 KiB, at the times of its Hour. NaN means unknown.
type trail [len(destinationLines)][points]float32

func newTrail() *trail {
	t := new(trail)
	for i := range t {
		for at := range t[i] {
			t[i][at] = float32(math.NaN())
		}
	}
	return t
}

// set stores the values of a point; d is nil if the destination is not present.
func (t *trail) set(at int, d *delivery.Destination) {
	for i := range t {
		t[i][at] = float32(math.NaN())
		if d == nil {
			continue
		}
		if v := destinationLines[i].of(d); v != nil {
			t[i][at] = float32(*v)
		}
	}
}

func (t *trail) empty() bool {
	for i := range t {
		if slices.ContainsFunc(t[i][:], func(v float32) bool { return !math.IsNaN(float64(v)) }) {
			return false
		}
	}
	return true
}

// ackNow returns how long the answers of this interval took, nil if there were none.
func ackNow(d *delivery.Destination) *float64 {
	if d.SentRate == nil || *d.SentRate == 0 {
		return nil
	}
	return d.AckSeconds
}

// trails are the histories of all destinations.
type trails map[trailKey]*trail

// add adds a point for all destinations.
func (t *trails) add(at int, destinations map[trailKey]*delivery.Destination) {
	for key, one := range *t {
		one.set(at, destinations[key])
		if destinations[key] == nil && one.empty() {
			delete(*t, key)
		}
	}
	for key, d := range destinations {
		if (*t)[key] == nil && len(*t) < maxTrails {
			if *t == nil {
				*t = trails{}
			}
			(*t)[key] = newTrail()
			(*t)[key].set(at, d)
		}
	}
}

// destinations returns the destinations of all exporters, with their rates.
func destinations(span meter.Span) map[trailKey]*delivery.Destination {
	out := map[trailKey]*delivery.Destination{}
	for s := range span.Now.Deliveries {
		all := delivery.Of(span, s)
		for i := range all {
			key := trailKey{s.Name(), s.Signal, all[i].Name}
			if out[key] == nil {
				out[key] = &all[i]
			}
		}
	}
	return out
}

type (
	destinationsJSON struct {
		Interval     float64     `json:"interval_seconds"`
		Times        []int64     `json:"times"`
		Destinations []trailJSON `json:"destinations"`
	}

	trailJSON struct {
		Exporter    string          `json:"exporter"`
		Signal      string          `json:"signal"`
		Destination string          `json:"destination"`
		Series      []trailLineJSON `json:"series"`
	}

	trailLineJSON struct {
		Name   string      `json:"name"`
		Unit   string      `json:"unit"`
		Values trailValues `json:"values"`
	}

	// trailValues are written with four digits, more than a chart shows, and as null if unknown.
	trailValues []float32
)

func (v trailValues) MarshalJSON() ([]byte, error) {
	out := append(make([]byte, 0, 8*len(v)+2), '[')
	for i, n := range v {
		if i > 0 {
			out = append(out, ',')
		}
		if math.IsNaN(float64(n)) {
			out = append(out, "null"...)
		} else {
			out = strconv.AppendFloat(out, float64(n), 'g', 4, 32)
		}
	}
	return append(out, ']'), nil
}

// Destinations answers with the history of each destination.
func (h *Hour) Destinations(*http.Request) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first, n := h.span()
	out := destinationsJSON{Interval: meter.Interval.Seconds(), Times: make([]int64, n), Destinations: []trailJSON{}}
	for j := range n {
		out.Times[j] = h.times[(first+j)%points]
	}
	for key, t := range h.trails {
		one := trailJSON{Exporter: key.exporter, Signal: key.signal, Destination: key.destination}
		for i := range destinationLines {
			line := trailLineJSON{destinationLines[i].name, destinationLines[i].unit, make(trailValues, n)}
			for j := range n {
				line.Values[j] = t[i][(first+j)%points]
			}
			one.Series = append(one.Series, line)
		}
		out.Destinations = append(out.Destinations, one)
	}
	inorder.Sort(out.Destinations, func(a, b trailJSON) int {
		return strings.Compare(a.Exporter+"\x00"+a.Signal+"\x00"+a.Destination, b.Exporter+"\x00"+b.Signal+"\x00"+b.Destination)
	})
	return out, nil
}
