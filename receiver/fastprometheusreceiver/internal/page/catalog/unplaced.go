// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"maps"

	"github.com/prometheus/prometheus/model/labels"
)

// unplaced has the final labels of lines from when they are seen to when they are placed, and of those whose text cannot give them
// again for as long as they are known.
type unplaced struct {
	labels    map[*Line]labels.Labels
	most      int // that it has held
	unspelled map[*Line]struct{}
}

// mostUnplaced bounds the lines whose labels are kept. Beyond, as on the first of a large page, a line is read again, if its text tells
// them.
const mostUnplaced = 1 << 12

func newUnplaced() unplaced {
	return unplaced{labels: map[*Line]labels.Labels{}, unspelled: map[*Line]struct{}{}}
}

// keep keeps the labels of a line whose text gives them, if there is room.
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

// isUnspelled tells whether the text of a line cannot give its labels.
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

func (u *unplaced) forget(l *Line) {
	delete(u.labels, l)
	delete(u.unspelled, l)
}

// slim gives back what a page of new lines took: a map does not shrink by itself.
func (u *unplaced) slim() {
	if u.most <= 1000+4*len(u.labels) {
		return
	}
	kept := make(map[*Line]labels.Labels, len(u.labels))
	maps.Copy(kept, u.labels)
	u.labels, u.most = kept, len(kept)
}
