// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"maps"

	"github.com/prometheus/prometheus/model/labels"
)

// unplaced keeps the final labels of new lines until these are placed, and for good if the text of a line does not
// determine them.
type unplaced struct {
	labels    map[*Line]labels.Labels
	most      int // the most that it has held
	unspelled map[*Line]struct{}
}

// mostUnplaced limits the lines whose labels are kept. Beyond that, as on the first large page, a line is parsed again
// if its text determines the labels.
const mostUnplaced = 1 << 12

func newUnplaced() unplaced {
	return unplaced{labels: map[*Line]labels.Labels{}, unspelled: map[*Line]struct{}{}}
}

// keep keeps the labels of a line whose text determines them, if there is room.
func (u *unplaced) keep(l *Line, set labels.Labels) {
	if len(u.labels) < mostUnplaced {
		u.put(l, set)
	}
}

// keepUnspelled keeps those of a line whose text does not.
func (u *unplaced) keepUnspelled(l *Line, set labels.Labels) {
	u.unspelled[l] = struct{}{}
	if !set.IsEmpty() {
		u.put(l, set)
	}
}

func (u *unplaced) put(l *Line, set labels.Labels) {
	u.labels[l] = set
	u.most = max(u.most, len(u.labels))
}

// isUnspelled reports whether the text of a line does not determine its labels.
func (u *unplaced) isUnspelled(l *Line) bool {
	_, ok := u.unspelled[l]
	return ok
}

// take returns the labels of a line that is being placed, if they were kept.
func (u *unplaced) take(l *Line) (labels.Labels, bool) {
	set, ok := u.labels[l]
	if !u.isUnspelled(l) {
		delete(u.labels, l)
	}
	return set, ok
}

// sweep forgets the lines without a mark.
func (u *unplaced) sweep(mark uint32) {
	for l := range u.labels {
		if l.Epoch != mark {
			delete(u.labels, l)
		}
	}
	for l := range u.unspelled {
		if l.Epoch != mark {
			delete(u.unspelled, l)
		}
	}
}

// slim frees what a page of new lines took, since a map does not shrink.
func (u *unplaced) slim() {
	if u.most <= 1000+4*len(u.labels) {
		return
	}
	kept := make(map[*Line]labels.Labels, len(u.labels))
	maps.Copy(kept, u.labels)
	u.labels, u.most = kept, len(kept)
}
