// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/internal/inorder"
)

// Snapshot is the content of a Book. Counts cover the last one to two windows.
type Snapshot struct {
	Names      float64  // distinct names of metrics, with StandardError
	Metrics    []Metric // sorted by series and rejected series in descending order, like all below
	Labels     []LabelCount
	Pairs      []Pair
	Rejections []Rejection
	// Sampled is the number of series in which Pairs were counted; each stands for Factor series.
	Sampled int
	Factor  float64
	// Since is the time from which on births are counted.
	Since time.Time
	// Window is the length of the last whole window, 0 if there was none.
	Window time.Duration
	Bytes  int
}

// Metric is one metric name.
type Metric struct {
	Name, Unit       string
	Kind             uint64
	Series, Rejected float64
	Births           int     // series that got a place since Since
	Gone             float64 // series that disappeared in the last whole window
	// Standard errors. What the numbers do not contain because the metric was not ranked is in them.
	SeriesError, RejectedError, BirthsError, GoneError float64
	Points, Counts                                     int // points since Since, and how often they were counted
	Labels                                             []WithoutLabel
}

// WithoutLabel is a label, of one metric or of all, and the effect of removing it. It includes rejected series.
type WithoutLabel struct {
	Name    string
	Series  float64 // series with the label
	Values  float64 // distinct values
	Without float64 // series that these would become
	Error   float64 // relative standard error of each
	Missing float64 // at most so many series may not be in these numbers
	All     bool    // all series certainly have the label
}

// LabelCount is a label with its counts over all metrics.
type LabelCount struct {
	WithoutLabel

	FreshValues float64 // values that were not there in the window before
	Births      int
	ValueBytes  float64 // size of all values together
}

// Pair is a label with its value.
type Pair struct {
	Key, Value string
	Series     float64
}

// Rejection has examples of series that a rule rejected.
type Rejection struct {
	Rule, Reason string
	Examples     []Example
}

// Example is one series. Labels alternates keys and values.
type Example struct {
	Metric string
	Labels []string

	// Of a rejected one.
	Action, Tenant string
	At             time.Time
}

// Snapshot returns the content of the book, at most limit entries of each kind.
func (b *Book) Snapshot(limit int) Snapshot {
	bytes := b.Bytes()
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Snapshot{Since: b.began[1], Window: b.began[0].Sub(b.began[1]), Bytes: bytes, Names: b.names.estimate()}
	missing, sampled := unseen{}, b.pairs(&s)
	missing.of(&b.rest, true, 0)
	rejected := b.rest.rejected.estimate()
	for _, r := range b.metrics.rows {
		m := b.metric(r, &sampled)
		rejected += m.Rejected + m.RejectedError
		m.Labels = missing.of(&r.of, r.late == 0, sampled.missing(r.name, r.late, r.lost, r.of.series.estimate()))
		sortBy(m.Labels, func(l WithoutLabel) (float64, string) { return l.Series - l.Without, l.Name })
		if m.Series+m.Rejected > 0 {
			s.Metrics = append(s.Metrics, m)
		}
	}
	sortBy(s.Metrics, func(m Metric) (float64, string) { return m.Series + m.Rejected, m.Name })
	for _, r := range b.labels.rows {
		l := LabelCount{
			WithoutLabel: missing.and(r.of.hash, r.of.snapshot(b.series, true)), FreshValues: r.of.values.fresh(), Births: r.of.births[0] + r.of.births[1],
		}
		l.Missing += sampled.missingLabel(r, rejected)
		l.ValueBytes = l.Values * r.of.length
		if l.Series > 0 {
			s.Labels = append(s.Labels, l)
		}
	}
	sortBy(s.Labels, func(l LabelCount) (float64, string) { return l.Values, l.Name })
	for key, last := range b.refused.of {
		r := Rejection{Rule: key[0], Reason: key[1]}
		for _, t := range last {
			if t.series != "" {
				e := t.series.example()
				e.Action, e.Tenant, e.At = t.action, t.tenant, t.at
				r.Examples = append(r.Examples, e)
			}
		}
		s.Rejections = append(s.Rejections, r)
	}
	inorder.Sort(s.Rejections, func(x, y Rejection) int {
		return cmp.Or(cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Reason, y.Reason))
	})
	s.Metrics, s.Labels, s.Pairs = first(s.Metrics, limit), first(s.Labels, limit), first(s.Pairs, limit)
	return s
}

// metric returns what is known of a metric.
func (b *Book) metric(r *ranked[metric], sampled *sampled) Metric {
	of := &r.of
	m := Metric{
		Name: r.name, Unit: of.unit, Kind: of.kind, Series: of.series.estimate(), Rejected: of.rejected.estimate(),
		Births: of.births[0] + of.births[1], Gone: of.gone, GoneError: of.goneError,
		Points: of.points[0] + of.points[1], Counts: of.counts[0] + of.counts[1],
	}
	m.SeriesError, m.RejectedError = StandardError*m.Series, StandardError*m.Rejected
	if r.late == 0 {
		return m
	}
	missing := sampled.missing(r.name, r.late, r.lost, m.Series)
	if n, e := sampled.of(sampled.metrics[clean(r.name)]); n > m.Series && !isCut(r.name) {
		m.Series = min(n, m.Series+float64(r.lost))
		m.SeriesError = max(StandardError*m.Series, min(e, missing))
	} else {
		m.SeriesError += missing
	}
	m.BirthsError = missing
	if b.metrics.crowded > 0 { // a metric is held while series of it are rejected
		m.RejectedError += float64(r.lost)
	}
	if r.late == windows {
		m.GoneError = float64(r.lost)
	}
	if of.began > 0 && b.passed >= of.began {
		m.Points = max(m.Points, int(float64(m.Points)*float64(b.passed-b.before[1])/float64(b.passed-of.began+1)))
	}
	return m
}

// pairs counts the labels with their values, and returns what else the sample has.
func (b *Book) pairs(s *Snapshot) sampled {
	counts, in := map[[2]string]int{}, sampled{metrics: map[string]int{}, labels: map[string]int{}, whole: true}
	s.Factor = b.sample.each(func(t text) {
		s.Sampled++
		in.add(t)
		t.labels(func(key, value string) { counts[[2]string{key, value}]++ })
	})
	in.factor = s.Factor
	for pair, n := range counts {
		s.Pairs = append(s.Pairs, Pair{Key: pair[0], Value: pair[1], Series: float64(n) * s.Factor})
	}
	slices.SortStableFunc(s.Pairs, func(x, y Pair) int { // there are thousands: avoid a string for each comparison
		return cmp.Or(cmp.Compare(y.Series, x.Series), strings.Compare(x.Key, y.Key), strings.Compare(x.Value, y.Value))
	})
	return in
}

// snapshot returns the counts of a label in the given number of observed series. all reports whether these are all
// series.
func (c *counted) snapshot(noted [2]int, all bool) WithoutLabel {
	l := WithoutLabel{
		Name: c.name, Series: c.series.estimate(), Values: c.values.estimate(), Without: c.without.estimate(), Error: StandardError,
		All: all && c.noted == noted,
	}
	l.Without = min(l.Without, l.Series)
	return l
}

func (t text) example() Example {
	e := Example{Metric: t.metric()}
	t.labels(func(key, value string) { e.Labels = append(e.Labels, key, value) })
	return e
}

// sortBy sorts by a number, the greatest first, and then by name.
func sortBy[T any](all []T, by func(T) (float64, string)) {
	inorder.Sort(all, func(x, y T) int {
		n, name := by(x)
		m, other := by(y)
		return cmp.Or(cmp.Compare(m, n), cmp.Compare(name, other))
	})
}

func first[T any](all []T, n int) []T { return all[:min(n, len(all))] }

// Sample returns the series of the sample, and the number of series that each stands for.
func (b *Book) Sample() (all []Example, factor float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	factor = b.sample.each(func(t text) { all = append(all, t.example()) })
	inorder.Sort(all, func(x, y Example) int {
		return cmp.Or(cmp.Compare(x.Metric, y.Metric), slices.Compare(x.Labels, y.Labels))
	})
	return all, factor
}
