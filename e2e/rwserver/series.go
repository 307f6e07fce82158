// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rwserver

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
)

// Series is what arrived with one set of labels, in order of arrival.
type Series struct {
	Labels     labels.Labels
	Samples    []Sample
	Histograms []Histogram
	Exemplars  []exemplar.Exemplar
}

// Sample is a float with a timestamp in milliseconds since the epoch. ST is the start timestamp of remote write 2.0, 0
// if there is none.
type Sample struct {
	T, ST int64
	V     float64
}

// Stale reports whether the sample is a staleness marker.
func (s Sample) Stale() bool { return value.IsStaleNaN(s.V) }

// Histogram is a native histogram with a timestamp: either Int or Float is set.
type Histogram struct {
	T, ST int64
	Int   *histogram.Histogram
	Float *histogram.FloatHistogram
}

// protoHistogram is implemented by the messages of both versions.
type protoHistogram interface {
	IsFloatHistogram() bool
	ToIntHistogram() *histogram.Histogram
	ToFloatHistogram() *histogram.FloatHistogram
}

func histogramOf(h protoHistogram, t, st int64) Histogram {
	if h.IsFloatHistogram() {
		return Histogram{T: t, ST: st, Float: h.ToFloatHistogram()}
	}
	return Histogram{T: t, ST: st, Int: h.ToIntHistogram()}
}

// firstStepBack returns the first timestamp that is not later than the one before.
func (s Series) firstStepBack() (int64, bool) {
	last := int64(math.MinInt64)
	for _, sample := range s.Samples {
		if sample.T <= last {
			return sample.T, true
		}
		last = sample.T
	}
	last = math.MinInt64
	for _, h := range s.Histograms {
		if h.T <= last {
			return h.T, true
		}
		last = h.T
	}
	return 0, false
}

// memory holds the series that were kept.
type memory struct {
	series   map[string]*Series // by the text of the labels
	metadata map[string]metadata.Metadata
}

func newMemory() memory {
	return memory{series: map[string]*Series{}, metadata: map[string]metadata.Metadata{}}
}

func (m *memory) add(msg *message) {
	for _, s := range msg.series {
		key := s.Labels.String()
		known := m.series[key]
		if known == nil {
			known = &Series{Labels: s.Labels}
			m.series[key] = known
		}
		known.Samples = append(known.Samples, s.Samples...)
		known.Histograms = append(known.Histograms, s.Histograms...)
		known.Exemplars = append(known.Exemplars, s.Exemplars...)
	}
	maps.Copy(m.metadata, msg.metadata)
}

// Series returns the series with a metric name and these labels, sorted by labels. An empty name means any metric.
// Pairs are label name, value, and so on.
func (s *Server) Series(name string, pairs ...string) []Series {
	var matchers []labels.Label
	if name != "" {
		matchers = append(matchers, labels.Label{Name: model.MetricNameLabel, Value: name})
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		matchers = append(matchers, labels.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Series
	for _, key := range slices.Sorted(maps.Keys(s.memory.series)) {
		series := s.memory.series[key]
		if !slices.ContainsFunc(matchers, func(m labels.Label) bool { return series.Labels.Get(m.Name) != m.Value }) {
			found = append(found, Series{
				series.Labels, slices.Clone(series.Samples), slices.Clone(series.Histograms), slices.Clone(series.Exemplars),
			})
		}
	}
	return found
}

// Only returns the one series that matches, and fails the test if there is not exactly one.
func (s *Server) Only(t testing.TB, name string, pairs ...string) Series {
	t.Helper()
	found := s.Series(name, pairs...)
	if len(found) != 1 {
		t.Fatalf("%d series %s with %q, not one: %v", len(found), name, pairs, found)
	}
	return found[0]
}

// Metadata returns the last metadata received: by family in remote write 1.0, by the series' metric name in 2.0.
func (s *Server) Metadata() map[string]metadata.Metadata {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.memory.metadata)
}

// StepsBack returns the series with a timestamp that is not later than the one before: data out of order or twice.
func (s *Server) StepsBack() []string {
	var found []string
	for _, series := range s.Series("") {
		if t, ok := series.firstStepBack(); ok {
			found = append(found, fmt.Sprintf("%s at %d", series.Labels, t))
		}
	}
	return found
}
