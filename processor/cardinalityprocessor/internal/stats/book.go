// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
)

// MaxLabels is the number of a series' labels that are counted.
const MaxLabels = 40

// Limits on what is kept. What exceeds them is in the totals, but not listed separately.
const (
	maxMetrics      = 160
	maxDetailed     = 12 // how many metrics also have their labels counted
	maxMetricLabels = 12
	maxLabels       = 64
	maxText         = 64 // bytes of a name or value

	allRefused  = 1 << 13 // rejected series of a metric in a window, after which one in someRefused is looked at
	someRefused = 16

	rankEvery = 1024 // how many series come between two choices of the metrics whose labels are counted
)

// Series describes a series to a Book, which does not keep it.
type Series struct {
	Fingerprint uint64
	Base        uint64 // hash of all that identifies it except Labels
	Metric      string
	Unit        string
	Kind        uint64 // the type of its metric, in the caller's terms
	Labels      []Label
	New         bool // it has just been admitted
	Again       bool // it last came before its metric was chosen
	Moment      moment.Moment
	Chosen      moment.Moment // as returned by Chosen

	// Of a series that was not admitted.
	Rejected             bool
	Rule, Reason, Action string
	Tenant               string
	At                   time.Time
}

// Label is one attribute of a series, of its resource or its points.
type Label struct {
	Key   string
	Value pcommon.Value
	Name  uint64 // hash of Key
	Hash  uint64 // of both
}

// A Book counts series, by metric and label. It is safe for concurrent use.
type Book struct {
	hash func(name string) uint64

	// OnChoice is called when the labels of a metric that already has series begin to be counted. Now returns the
	// current time. A caller without both does not report series again.
	OnChoice func()
	Now      func() moment.Moment
	chosen   atomic.Pointer[[]choice]

	mu      sync.Mutex
	began   [2]time.Time // of this window and the one before
	names   distinct     // of metrics
	metrics ranking[metric]
	rest    metric // all metrics without a place of their own
	labels  ranking[label]
	sample  sample
	refused examples
	noted   int
	series  [2]int    // number of observed series, in this window and the one before
	passed  uint64    // points of all metrics, as reported
	before  [2]uint64 // the same at the beginning of this window and the one before
	without [MaxLabels]uint64
	rows    [MaxLabels]*ranked[label] // of the last series: the next one's labels are mostly the same
}

// metric holds the counts of a metric name.
type metric struct {
	unit             string
	kind             uint64
	series, rejected distinct
	observed         distinct // series by which its labels are counted
	refused          int      // in this window, including repetitions
	limited          [2]bool  // whether series were rejected, in this window and the one before
	births           [2]int
	gone, goneError  float64 // series of the window before last that were not in the last
	lost             uint64  // as in its row at the end of the last window
	points, counts   [2]int  // points, and the number of reports of them
	began            uint64  // points of all metrics up to its first report, and one
	detailed         bool
	chosen           moment.Moment // in this window, if it had series
	marked           moment.Moment // the same, in any window
	seen, noted      [2]int        // how often its series were observed, and how often since its labels are counted: in this window and the one before
	earlier          int           // at most so many were observed before, and not since
	labels           []counted
	worst            []worst // of its labels, sorted
	asked            int     // calls of Worst
}

// label holds the counts of a label name.
type label struct {
	counted

	births [2]int
	length float64 // mean length of its values
}

// counted are the counts of a label, in all metrics or in one.
type counted struct {
	name                    string
	hash                    uint64
	noted                   [2]int   // number of observed series with it, as in metric
	series, values, without distinct // without counts the series that would remain without it
}

// NewBook returns an empty Book.
func NewBook(now time.Time, hash func(name string) uint64) *Book {
	return &Book{
		hash:    hash,
		began:   [2]time.Time{now, now},
		metrics: newRanking[metric](maxMetrics),
		labels:  newRanking[label](maxLabels),
		sample:  sample{entries: map[uint64]*entry{}},
		refused: examples{of: map[[2]string]*[maxExamples]refusal{}},
	}
}

// fold combines the identities of labels into that of a series.
func fold(sum, base uint64) uint64 {
	hi, lo := bits.Mul64(sum^0x9e3779b97f4a7c15, base^0xd1b54a32d192ed03)
	return hi ^ lo
}

// Observe must be called for each series that is new, for others once in a window, and for rejected ones as Refuse
// says.
func (b *Book) Observe(s *Series) {
	if len(s.Labels) > MaxLabels {
		s.Labels = s.Labels[:MaxLabels]
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	name := b.hash(s.Metric)
	b.names.add(markOf(name))
	row := b.metrics.get(s.Metric, name)
	m := &row.of
	m.kind = s.Kind
	if m.unit == "" {
		m.unit = short(s.Unit)
	}
	if b.noted++; b.noted%rankEvery == 0 {
		b.choose()
	} else if !m.detailed && b.noted < rankEvery {
		if b.countDetailed() < maxDetailed {
			b.detail(row)
		}
	}
	of := b.detailed(m)
	id, twice := b.identify(s)
	if s.Rejected {
		of.observed.add(refusedMark(s.Fingerprint))
		b.refused.add(s, b.noted)
	} else {
		m.series.add(id)
		of.series.add(id)
		b.sample.add(s, name)
	}
	if s.New {
		m.births[0]++
	}
	m.see(s)
	of.noted[0]++
	b.series[0]++
	for i := range s.Labels {
		b.label(of, i, &s.Labels[i], id, s.New, twice && s.hasBefore(i))
	}
}

// hasBefore reports whether an earlier label has the same name.
func (s *Series) hasBefore(i int) bool {
	return slices.ContainsFunc(s.Labels[:i], func(l Label) bool { return l.Name == s.Labels[i].Name })
}

// Refuse must be called for each rejected series as it comes, and reports whether Observe should be called, too: for
// all of them while they are few, and then for some, different ones each time, so that series that keep coming are seen
// in the end.
func (b *Book) Refuse(metric string, fingerprint uint64) (observe bool) {
	return len(b.RefuseAll(metric, []uint64{fingerprint}, nil)) > 0
}

// refusedAtOnce is the number of series that are counted while others wait.
const refusedAtOnce = 256

// RefuseAll is Refuse for several series of a metric. It appends for which of them Observe should be called.
func (b *Book) RefuseAll(metric string, fingerprints []uint64, observe []int) []int {
	for begin := 0; begin < len(fingerprints); begin += refusedAtOnce {
		observe = b.refuseSome(metric, fingerprints, begin, observe)
	}
	return observe
}

func (b *Book) refuseSome(metric string, fingerprints []uint64, begin int, observe []int) []int {
	var marks [refusedAtOnce]mark // everything slow is done before the lock is taken
	end := min(begin+refusedAtOnce, len(fingerprints))
	for i, fp := range fingerprints[begin:end] {
		marks[i] = refusedMark(fp)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	row := b.metrics.last
	if name := b.hash(metric); row == nil || row.hash != name {
		row = b.metrics.find(metric, name)
		b.metrics.last = row
	}
	m := &row.of
	row.held = windows
	if !m.limited[0] {
		m.limited[0] = true
		b.choose()
	}
	of := b.detailed(m)
	m.rejected.addAll(marks[:end-begin])
	if of != m {
		of.rejected.addAll(marks[:end-begin])
	}
	for i := begin; i < end; i++ {
		of.refused++
		if of.refused <= allRefused || fold(uint64(of.refused), 4)%someRefused == 0 {
			observe = append(observe, i)
		} else {
			row.weight++
		}
	}
	return observe
}

// Passed must be called with the number of points of a metric that came, or with the number that a sample stands for.
// Names that are not kept are not counted separately.
func (b *Book) Passed(metric string, points int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if row := b.metrics.byName[b.hash(metric)]; row != nil {
		if row.of.began == 0 {
			row.of.began = b.passed + 1
		}
		row.of.points[0] += points
		row.of.counts[0]++
	}
	b.passed += uint64(points)
}

// detailed returns where the labels of a metric are counted.
func (b *Book) detailed(m *metric) *metric {
	if m.detailed {
		return m
	}
	return &b.rest
}

func refusedMark(fingerprint uint64) mark { return markOf(fold(fingerprint, 3)) }

// identify computes the hashes of a series and of the series without each of its labels. It reports whether a label
// occurs twice, in its resource and in its points.
func (b *Book) identify(s *Series) (id mark, twice bool) {
	var sum uint64
	for i := range s.Labels {
		sum += s.Labels[i].Hash
		for j := range i {
			twice = twice || s.Labels[j].Name == s.Labels[i].Name
		}
	}
	for i := range s.Labels {
		gone := s.Labels[i].Hash
		if twice { // such a label vanishes as a whole
			gone = sumOf(s.Labels, s.Labels[i].Name)
		}
		b.without[i] = fold(sum-gone, s.Base)
	}
	return markOf(fold(sum, s.Base)), twice
}

func sumOf(labels []Label, name uint64) (sum uint64) {
	for i := range labels {
		if labels[i].Name == name {
			sum += labels[i].Hash
		}
	}
	return sum
}

// label counts the i-th label of a series.
func (b *Book) label(m *metric, i int, l *Label, id mark, born, again bool) {
	row := b.rows[i]
	if row == nil || row.hash != l.Name {
		row = b.labels.find(l.Key, l.Name)
		b.rows[i] = row
	}
	row.weight++
	all := &row.of
	if all.hash == 0 {
		all.name, all.hash = row.name, l.Name
	}
	value, without := markOf(fold(l.Hash, 1)), markOf(b.without[i])
	all.count(id, value, without, again)
	if born {
		all.births[0]++
	}
	if l.Value.Type() == pcommon.ValueTypeStr {
		all.length += (float64(len(l.Value.Str())) - all.length) / 64
	}
	if c := m.label(i, all); c != nil {
		c.count(id, value, without, again)
	}
}

// label finds a label of the metric, first at the position it has in most of its series, and adds it while there is
// room.
func (m *metric) label(i int, of *label) *counted {
	if i < len(m.labels) && m.labels[i].hash == of.hash {
		return &m.labels[i]
	}
	for i := range m.labels {
		if m.labels[i].hash == of.hash {
			return &m.labels[i]
		}
	}
	if len(m.labels) == maxMetricLabels {
		return nil
	}
	m.labels = append(m.labels, counted{name: of.name, hash: of.hash})
	return &m.labels[len(m.labels)-1]
}

func (c *counted) count(id, value, without mark, again bool) {
	if !again {
		c.noted[0]++
	}
	c.series.add(id)
	c.values.add(value)
	c.without.add(without)
}

func (c *counted) turn() {
	c.noted = [2]int{0, c.noted[0]}
	c.series.turn()
	c.values.turn()
	c.without.turn()
}

// choose selects the metrics whose labels are counted: first those with rejected series. A selected metric is only
// replaced by one that precedes it, or that is twice its size.
func (b *Book) choose() {
	for b.countDetailed() < maxDetailed {
		best := b.foremost()
		if best == nil {
			return
		}
		b.detail(best)
	}
	least, best := b.lastDetailed(), b.foremost()
	if least == nil || best == nil || least.of.atLimit() && !best.of.atLimit() {
		return
	}
	if best.of.atLimit() && !least.of.atLimit() || best.weight > 2*least.weight {
		least.of.detailed, least.of.labels = false, nil
		b.detail(best)
	}
}

// atLimit reports whether series of a metric were rejected recently.
func (m *metric) atLimit() bool { return m.limited[0] || m.limited[1] }

// goesBefore reports whether the labels of r should be counted rather than those of other.
func goesBefore(r, other *ranked[metric]) bool {
	if r.of.atLimit() != other.of.atLimit() {
		return r.of.atLimit()
	}
	return r.weight > other.weight
}

func (b *Book) countDetailed() (n int) {
	for _, r := range b.metrics.rows {
		if r.of.detailed {
			n++
		}
	}
	return n
}

// foremost returns the first of the metrics whose labels are not counted.
func (b *Book) foremost() (best *ranked[metric]) {
	for _, r := range b.metrics.rows {
		if !r.of.detailed && (best == nil || goesBefore(r, best)) {
			best = r
		}
	}
	return best
}

// lastDetailed returns the last of the metrics whose labels are counted.
func (b *Book) lastDetailed() (least *ranked[metric]) {
	for _, r := range b.metrics.rows {
		if r.of.detailed && (least == nil || goesBefore(least, r)) {
			least = r
		}
	}
	return least
}

// Turn begins a new window. What was not seen in two windows is removed. The lock is released between the parts,
// because estimating how many series of a metric are gone takes a while.
func (b *Book) Turn(now time.Time) {
	var metrics []*metric
	b.locked(func() {
		b.began = [2]time.Time{now, b.began[0]}
		b.names.turn()
		b.series = [2]int{0, b.series[0]}
		b.chosen.Store(nil) // all series are reported in this window
		for _, l := range b.labels.turn() {
			l.turn()
			l.births = [2]int{0, l.births[0]}
		}
		b.before = [2]uint64{b.passed, b.before[0]}
		for _, r := range b.metrics.rows {
			r.of.lost = r.lost
		}
		metrics = append(b.metrics.turn(), &b.rest)
	})
	b.locked(b.sample.turn)
	for _, m := range metrics {
		b.locked(m.turn)
	}
}

func (b *Book) locked(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
}

func (m *metric) turn() {
	m.gone, m.goneError = m.series.gone()
	m.goneError += float64(m.lost)
	m.points, m.counts = [2]int{0, m.points[0]}, [2]int{0, m.counts[0]}
	m.series.turn()
	m.rejected.turn()
	m.observed.turn()
	m.refused, m.chosen = 0, 0
	m.limited = [2]bool{false, m.limited[0]}
	m.births = [2]int{0, m.births[0]}
	m.seen, m.noted = [2]int{0, m.seen[0]}, [2]int{0, m.noted[0]}
	kept := m.labels[:0]
	for _, l := range m.labels {
		if l.turn(); l.series.now != nil || l.series.before != nil {
			kept = append(kept, l)
		}
	}
	clear(m.labels[len(kept):])
	m.labels = kept
}

// short returns a copy of a name or value, which it shortens if it is too long.
func short(s string) string {
	if len(s) <= maxText {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}
