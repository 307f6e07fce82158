// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-otel/godwit/internal/inorder"
)

// destinationLines are what the history of a destination consists of.
var destinationLines = [...]struct {
	name, unit string
	of         func(*destinationJSON) *float64
}{
	{"taken", itemsPerSecond, func(d *destinationJSON) *float64 { return d.TakenRate }},
	{"sent", itemsPerSecond, func(d *destinationJSON) *float64 { return d.SentRate }},
	{lineDropped, itemsPerSecond, func(d *destinationJSON) *float64 { return d.LostRate }},
	{"waiting", "items", func(d *destinationJSON) *float64 { return number(float64(d.Waiting)) }},
	{lineWire, "B/s", func(d *destinationJSON) *float64 { return d.WireRate }},
	{"ack_seconds", "s", (*destinationJSON).ackNow},
}

// maxTrails destinations have a history. Others begin one when one of these has been gone for an hour.
const maxTrails = 32

// trailKey tells destinations apart. Two of one exporter may have the same name: then they have one history, the first's.
type trailKey struct{ exporter, signal, destination string }

// A trail is the last hour of one destination, 8.4 KiB, at the times of the ring that it is in. NaN is unknown.
type trail [len(destinationLines)][ringSize]float32

func newTrail() *trail {
	t := new(trail)
	for i := range t {
		for at := range t[i] {
			t[i][at] = float32(math.NaN())
		}
	}
	return t
}

// set has the values of one moment; d is nil while the destination is not there.
func (t *trail) set(at int, d *destinationJSON) {
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

// ackNow is how long the answers of this stretch took. While there are none, what earlier ones took says nothing.
func (d *destinationJSON) ackNow() *float64 {
	if d.SentRate == nil || *d.SentRate == 0 {
		return nil
	}
	return d.AckSeconds
}

// addTrails adds a moment of all destinations; r.mu is held.
func (r *ring) addTrails(at int, destinations map[trailKey]*destinationJSON) {
	for key, t := range r.trails {
		t.set(at, destinations[key])
		if destinations[key] == nil && t.empty() {
			delete(r.trails, key)
		}
	}
	for key, d := range destinations {
		if r.trails[key] == nil && len(r.trails) < maxTrails {
			if r.trails == nil {
				r.trails = map[trailKey]*trail{}
			}
			r.trails[key] = newTrail()
			r.trails[key].set(at, d)
		}
	}
}

// destinations are those of all exporters, with the rates between two readings.
func (c *console) destinations(before, now *reading) map[trailKey]*destinationJSON {
	out := map[trailKey]*destinationJSON{}
	for s := range now.deliveries {
		all := destinationsOf(before, now, s)
		for i := range all {
			key := trailKey{s.name(), s.Signal, all[i].Name}
			if out[key] == nil {
				out[key] = &all[i]
			}
		}
	}
	return out
}

type (
	destinationHistoryJSON struct {
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

	// trailValues are written with four digits, which is more than a chart shows, and unknown ones as null.
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

func (c *console) destinationHistory(*http.Request) (any, error) {
	r := &c.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	first, n := r.span()
	out := destinationHistoryJSON{Interval: sampleInterval.Seconds(), Times: make([]int64, n), Destinations: []trailJSON{}}
	for j := range n {
		out.Times[j] = r.times[(first+j)%ringSize]
	}
	for key, t := range r.trails {
		one := trailJSON{Exporter: key.exporter, Signal: key.signal, Destination: key.destination}
		for i := range destinationLines {
			line := trailLineJSON{destinationLines[i].name, destinationLines[i].unit, make(trailValues, n)}
			for j := range n {
				line.Values[j] = t[i][(first+j)%ringSize]
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
