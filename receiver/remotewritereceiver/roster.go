// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

// roster numbers the families of a request by first occurrence, so that the metrics of a target are found by number.
// The targets of a request usually have the same families in the same order.
type roster struct {
	families []*family
	numbers  map[*family]int
	last     int // number of the last family
	places   int // for metrics, over all targets
	room     int // the same, including unused targets
	targets  []*target
	used     int // targets in use
}

// maxPlaces limits the places for metrics in a request: many targets with one metric each, all different, would take
// too many.
const maxPlaces = 1 << 16

// target returns an empty target.
func (r *roster) target() *target {
	if r.used == len(r.targets) {
		r.targets = append(r.targets, new(target))
	}
	r.used++
	return r.targets[r.used-1]
}

// place returns the place for the metric of a target and a family; nil if there is no room.
func (r *roster) place(of *target, f *family) *numbers {
	n := r.numberOf(f)
	if missing := n + 1 - len(of.numbers); missing > 0 {
		if r.places+missing > maxPlaces {
			return nil
		}
		r.places += missing
		r.room -= cap(of.numbers)
		of.numbers = append(of.numbers, make([]numbers, missing)...)
		r.room += cap(of.numbers)
	}
	return &of.numbers[n]
}

func (r *roster) numberOf(f *family) int {
	if next := r.last + 1; next < len(r.families) && r.families[next] == f { // fast path
		r.last = next
		return next
	}
	n, ok := r.numbers[f]
	if !ok {
		if n = len(r.families); n == 0 {
			r.numbers = emptyMap(r.numbers)
		}
		r.families = append(r.families, f)
		r.numbers[f] = n
	}
	r.last = n
	return n
}

// reset forgets the request.
func (r *roster) reset() {
	for _, of := range r.targets[:r.used] {
		clear(of.numbers)
		*of = target{numbers: of.numbers[:0]}
	}
	if r.room > 2*maxPlaces || len(r.targets)+cap(r.families) > maxPlaces { // one request must not hold memory for ever
		r.targets, r.families, r.room = nil, nil, 0
	}
	clear(r.families)
	r.families, r.numbers = r.families[:0], emptyMap(r.numbers)
	r.used, r.last, r.places = 0, 0, 0
}
