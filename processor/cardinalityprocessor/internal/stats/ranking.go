// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

// A ranking keeps the most frequent names (Space-Saving): a new name replaces the one with the least weight, and
// inherits its weight. So each name with a frequency above one in max is in it, whatever else comes. Names that are
// held are replaced last.
type ranking[T any] struct {
	max     int
	rows    []*ranked[T]
	byName  map[uint64]*ranked[T]
	last    *ranked[T]
	floor   uint64 // the greatest weight that was replaced, so that no name that is not ranked has more
	crowded uint8  // for how many windows held names may be missing
}

type ranked[T any] struct {
	name   string
	hash   uint64
	weight uint64
	late   uint8  // for how many windows it may lack what came before it was ranked: this one, and the one before
	lost   uint64 // how many occurrences in these windows that is at most
	held   uint8  // for how many windows
	of     T
}

func newRanking[T any](limit int) ranking[T] {
	return ranking[T]{max: limit, byName: map[uint64]*ranked[T]{}}
}

// get returns the row of a name, and counts one more occurrence.
func (r *ranking[T]) get(name string, hash uint64) *ranked[T] {
	row := r.last
	if row == nil || row.hash != hash {
		row = r.find(name, hash)
		r.last = row
	}
	row.weight++
	return row
}

// find returns the row of a name, which is valid as long as it has the name's hash.
func (r *ranking[T]) find(name string, hash uint64) *ranked[T] {
	row := r.byName[hash]
	if row == nil {
		row = r.admit()
		row.name, row.hash = short(name), hash
		r.byName[hash] = row
	}
	return row
}

func (r *ranking[T]) admit() *ranked[T] {
	if len(r.rows) < r.max {
		row := &ranked[T]{}
		r.rows = append(r.rows, row)
		return row
	}
	least := r.rows[0]
	for _, row := range r.rows[1:] {
		if held := row.held > 0; held == (least.held > 0) && row.weight < least.weight || !held && least.held > 0 {
			least = row
		}
	}
	if least.held > 0 {
		r.crowded = windows
	}
	delete(r.byName, least.hash)
	var none T
	r.floor = max(r.floor, least.weight)
	least.of, least.weight, least.held = none, r.floor, 0
	least.late, least.lost = windows, 2*r.floor+2 // it may have been ranked before, and forgotten; weights were halved
	return least
}

// turn halves all weights, and returns what is ranked.
func (r *ranking[T]) turn() []*T {
	all := make([]*T, 0, len(r.rows))
	r.floor /= 2
	r.crowded -= min(r.crowded, 1)
	for _, row := range r.rows {
		row.weight /= 2
		row.held -= min(row.held, 1)
		if row.late -= min(row.late, 1); row.late == 0 {
			row.lost = 0
		}
		all = append(all, &row.of)
	}
	return all
}

func (r *ranking[T]) bytes() (n int) {
	for _, row := range r.rows {
		n += rowBytes + len(row.name)
	}
	return n
}

// windows is the number of windows that are counted together.
const windows = 2

// rowBytes is an upper bound on the size of a row and its place in the map.
const rowBytes = 256
