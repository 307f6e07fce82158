// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math/bits"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// MaxBytes is more than a Book ever takes.
const MaxBytes = 3 << 20

// MaxLabels is how many labels of a series are looked at.
const MaxLabels = 40

// Bounds of what is kept. What is beyond them is in the totals, but not told apart.
const (
	maxMetrics      = 160
	maxDetailed     = 12 // metrics whose labels are counted, too
	maxMetricLabels = 12
	maxLabels       = 64
	maxText         = 64 // bytes of a name or value

	rankEvery = 1024 // series between two choices of the metrics whose labels are counted
)

// Series is what a Book is told of a series. It is not kept.
type Series struct {
	Fingerprint uint64
	Base        uint64 // hash of all that identifies it but Labels
	Metric      string
	Unit        string
	Kind        uint64 // whatever its metric's type is to the caller
	Labels      []Label
	New         bool // it was given a place just now

	// Of one that was given no place.
	Rejected             bool
	Rule, Reason, Action string
	Tenant               string
	At                   time.Time
}

// Label is one attribute of a series, of its resource or its points.
type Label struct {
	Key   string
	Value pcommon.Value
	Hash  uint64 // of both
}

// A Book counts. It is safe for concurrent use.
type Book struct {
	mu      sync.Mutex
	began   [2]time.Time // this window, and the one before
	names   distinct     // of metrics
	metrics ranking[metric]
	labels  ranking[label]
	sample  sample
	refused examples
	recent  *[recentSlots]uint64 // rejected series that are counted already
	told    int
	without [MaxLabels]uint64
}

const recentSlots = 1 << 13

// metric is what is known of a metric name.
type metric struct {
	unit             string
	kind             uint64
	series, rejected distinct
	births           [2]int
	detailed         bool
	labels           []counted
}

// label is what is known of a label name.
type label struct {
	counted

	births [2]int
	length float64 // mean, of values
}

// counted is a label, of all metrics or of one.
type counted struct {
	name                    string
	series, values, without distinct // without: what its series would be without it
}

// NewBook returns an empty Book.
func NewBook(now time.Time) *Book {
	return &Book{
		began:   [2]time.Time{now, now},
		metrics: newRanking[metric](maxMetrics),
		labels:  newRanking[label](maxLabels),
		sample:  sample{entries: map[uint64]*entry{}},
		refused: examples{},
	}
}

// fold is how the identities of labels come together in that of a series.
func fold(sum, base uint64) uint64 {
	hi, lo := bits.Mul64(sum^0x9e3779b97f4a7c15, base^0xd1b54a32d192ed03)
	return hi ^ lo
}

// Observe is to be told of each series that is new, of others once in a window, and of rejected ones as they come.
func (b *Book) Observe(s *Series) {
	if len(s.Labels) > MaxLabels {
		s.Labels = s.Labels[:MaxLabels]
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	id := b.identify(s)
	b.names.add(hashName(s.Metric))
	m := b.metrics.get(s.Metric)
	m.kind = s.Kind
	if m.unit == "" {
		m.unit = short(s.Unit)
	}
	if s.Rejected {
		m.rejected.add(id)
		b.refused.add(s, b.told)
	} else {
		m.series.add(id)
		b.sample.add(s)
	}
	if s.New {
		m.births[0]++
	}
	if b.told++; b.told%rankEvery == 0 {
		b.choose()
	} else if !m.detailed && b.told < rankEvery {
		m.detailed = b.countDetailed() < maxDetailed
	}
	for i := range s.Labels {
		b.label(m, &s.Labels[i], id, b.without[i], s.New)
	}
}

// Counted says whether a rejected series has been observed lately: the same ones come again and again.
func (b *Book) Counted(fingerprint uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.recent == nil {
		b.recent = new([recentSlots]uint64)
	}
	slot := &b.recent[fold(fingerprint, 0)%recentSlots]
	if *slot == fingerprint {
		return true
	}
	*slot = fingerprint
	return false
}

// identify finds the hashes of a series and of what it would be without each of its labels. A label that is there twice
// would vanish as a whole.
func (b *Book) identify(s *Series) uint64 {
	var sum uint64
	for i := range s.Labels {
		sum += s.Labels[i].Hash
	}
	for i := range s.Labels {
		gone := s.Labels[i].Hash
		for j := range s.Labels {
			if j != i && s.Labels[j].Key == s.Labels[i].Key {
				gone += s.Labels[j].Hash
			}
		}
		b.without[i] = fold(sum-gone, s.Base)
	}
	return fold(sum, s.Base)
}

func (b *Book) label(m *metric, l *Label, id, without uint64, born bool) {
	value := fold(l.Hash, 1)
	all := b.labels.get(l.Key)
	if all.name == "" {
		all.name = short(l.Key)
	}
	all.count(id, value, without)
	if born {
		all.births[0]++
	}
	if l.Value.Type() == pcommon.ValueTypeStr {
		all.length += (float64(len(l.Value.Str())) - all.length) / 64
	}
	if !m.detailed {
		return
	}
	for i := range m.labels {
		if m.labels[i].name == l.Key {
			m.labels[i].count(id, value, without)
			return
		}
	}
	if len(m.labels) < maxMetricLabels {
		m.labels = append(m.labels, counted{name: all.name})
		m.labels[len(m.labels)-1].count(id, value, without)
	}
}

func (c *counted) count(id, value, without uint64) {
	c.series.add(id)
	c.values.add(value)
	c.without.add(without)
}

func (c *counted) turn() {
	c.series.turn()
	c.values.turn()
	c.without.turn()
}

// choose picks the metrics whose labels are counted. One that has been picked gives way only to one twice its size.
func (b *Book) choose() {
	for b.countDetailed() < maxDetailed {
		best := b.heaviest()
		if best == nil {
			return
		}
		best.of.detailed = true
	}
	least, best := b.lightestDetailed(), b.heaviest()
	if least != nil && best != nil && best.weight > 2*least.weight {
		least.of.detailed, least.of.labels = false, nil
		best.of.detailed = true
	}
}

func (b *Book) countDetailed() (n int) {
	for _, r := range b.metrics.rows {
		if r.of.detailed {
			n++
		}
	}
	return n
}

// heaviest is the first of those whose labels are not counted.
func (b *Book) heaviest() (best *ranked[metric]) {
	for _, r := range b.metrics.rows {
		if !r.of.detailed && (best == nil || r.weight > best.weight) {
			best = r
		}
	}
	return best
}

func (b *Book) lightestDetailed() (least *ranked[metric]) {
	for _, r := range b.metrics.rows {
		if r.of.detailed && (least == nil || r.weight < least.weight) {
			least = r
		}
	}
	return least
}

// Turn begins a new window. What was not seen for two is forgotten.
func (b *Book) Turn(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began = [2]time.Time{now, b.began[0]}
	b.recent = nil
	b.names.turn()
	for _, r := range b.metrics.turn() {
		r.series.turn()
		r.rejected.turn()
		r.births = [2]int{0, r.births[0]}
		kept := r.labels[:0]
		for _, l := range r.labels {
			if l.turn(); l.series.now != nil || l.series.before != nil {
				kept = append(kept, l)
			}
		}
		clear(r.labels[len(kept):])
		r.labels = kept
	}
	for _, l := range b.labels.turn() {
		l.turn()
		l.births = [2]int{0, l.births[0]}
	}
	b.sample.turn()
}

// Bytes is the memory that is taken, names included.
func (b *Book) Bytes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.names.bytes() + b.sample.bytes + b.refused.bytes() + b.metrics.bytes() + b.labels.bytes()
	if b.recent != nil {
		n += 8 * recentSlots
	}
	of := func(all ...*distinct) {
		for _, d := range all {
			n += d.bytes()
		}
	}
	for _, r := range b.metrics.rows {
		of(&r.of.series, &r.of.rejected)
		n += cap(r.of.labels) * countedBytes
		for i := range r.of.labels {
			l := &r.of.labels[i]
			of(&l.series, &l.values, &l.without)
		}
	}
	for _, r := range b.labels.rows {
		of(&r.of.series, &r.of.values, &r.of.without)
	}
	return n
}

const countedBytes = 16 + 3*16

// short is a copy of a name or value, cut where it is too long.
func short(s string) string {
	if len(s) <= maxText {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

func hashName(name string) uint64 { return xxh3.HashString(name) }
