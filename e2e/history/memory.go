// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// memory is a storage of floats that the query engine can read. Prometheus' own database would link all of its service
// discoveries.
type memory map[string]*series

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
	since   int64 // start timestamp of a counter, if it has one
}

func (m memory) append(l labels.Labels, s sample) {
	key := l.String()
	if m[key] == nil {
		m[key] = &series{labels: l}
	}
	m[key].samples = append(m[key].samples, s)
}

// since stores a counter's start timestamp. It reports whether that is new, and the first timestamp at which the
// counter can be zero.
func (m memory) since(l labels.Labels, t int64) (from int64, news bool) {
	key := l.String()
	if m[key] == nil {
		m[key] = &series{labels: l}
	}
	s := m[key]
	if s.since == t {
		return 0, false
	}
	s.since, from = t, t
	if n := len(s.samples); n > 0 {
		from = max(from, s.samples[n-1].T()+1)
	}
	return from, true
}

// Querier returns a querier of all times: the engine drops samples outside of its range.
func (m memory) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: m.find}, nil
}

func (m memory) find(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, s := range m {
		if !slices.ContainsFunc(matchers, func(matcher *labels.Matcher) bool { return !matcher.Matches(s.labels.Get(matcher.Name)) }) {
			found = append(found, storage.NewListSeries(s.labels, s.samples))
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return strings.Compare(a.Labels().String(), b.Labels().String()) })
	return &set{found: found}
}

// set iterates over series; found holds those still to come.
type set struct {
	at    storage.Series
	found []storage.Series
}

func (s *set) Next() bool {
	if len(s.found) == 0 {
		return false
	}
	s.at, s.found = s.found[0], s.found[1:]
	return true
}

func (s *set) At() storage.Series              { return s.at }
func (*set) Err() error                        { return nil }
func (*set) Warnings() annotations.Annotations { return nil }

// sample is a float at a time.
type sample struct {
	t int64
	f float64
}

func (s sample) T() int64                    { return s.t }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.f }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }
