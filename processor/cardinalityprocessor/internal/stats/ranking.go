// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

// A ranking keeps the most frequent names (Space-Saving): a new name replaces the one with the least weight, and
// inherits its weight. So each name with a frequency above one in max is in it, whatever else comes.
type ranking[T any] struct {
	max    int
	rows   []*ranked[T]
	byName map[uint64]*ranked[T]
	last   *ranked[T]
}

type ranked[T any] struct {
	name   string
	hash   uint64
	weight uint64
	late   uint8 // for how many windows it may lack what came before it was ranked: this one, and the one before
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
		if row.weight < least.weight {
			least = row
		}
	}
	delete(r.byName, least.hash)
	var none T
	least.of, least.late = none, 2 // it may have been ranked before, and forgotten
	return least
}

// turn halves all weights, and returns what is ranked.
func (r *ranking[T]) turn() []*T {
	all := make([]*T, 0, len(r.rows))
	for _, row := range r.rows {
		row.weight /= 2
		row.late -= min(row.late, 1)
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

// rowBytes is an upper bound on the size of a row and its place in the map.
const rowBytes = 256
