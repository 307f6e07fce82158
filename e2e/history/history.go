// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package history stores pages of metrics as if Prometheus had scraped them, and evaluates queries with Prometheus' own
// engine. Tests move its clock, so they need not wait for minutes to pass.
package history

import (
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

const (
	maxSamples   = 10_000_000
	queryTimeout = time.Minute
)

// History is what was scraped up to a moment. It is not safe for concurrent use.
type History struct {
	t      testing.TB
	memory memory
	engine *promql.Engine
	now    time.Time
}

// New returns an empty history, which ends with the test.
func New(t testing.TB) *History {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: maxSamples, Timeout: queryTimeout, Parser: Parser()})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return &History{t: t, memory: memory{}, engine: engine, now: time.Now().Truncate(time.Minute)}
}

// MoveTo sets the clock.
func (h *History) MoveTo(now time.Time) { h.now = now }

// Put stores one sample of a series. The samples of a series must come in order.
func (h *History) Put(series labels.Labels, at time.Time, v float64) {
	h.memory.append(series, sample{at.UnixMilli(), v})
}

// PutCounter is Put for a counter with a start timestamp. If that is new, it also stores a zero for it, as Prometheus
// does.
func (h *History) PutCounter(series labels.Labels, since, at time.Time, v float64) {
	if zero, news := h.memory.since(series, since.UnixMilli()); news && zero < at.UnixMilli() {
		h.memory.append(series, sample{zero, 0})
	}
	h.Put(series, at, v)
}

// PutEnd stores a staleness marker.
func (h *History) PutEnd(series labels.Labels, at time.Time) {
	h.Put(series, at, math.Float64frombits(value.StaleNaN))
}

// Pass advances the clock.
func (h *History) Pass(d time.Duration) { h.now = h.now.Add(d) }

// Scraped stores a page in Prometheus' text format, from a target that is up.
func (h *History) Scraped(job, instance, page string) {
	h.t.Helper()
	p, err := textparse.New([]byte(page), "text/plain; version=0.0.4", labels.NewSymbolTable(), textparse.ParserOptions{})
	require.NoError(h.t, err)
	target := labels.FromStrings("job", job, "instance", instance)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(h.t, err)
		if entry != textparse.EntrySeries {
			continue
		}
		var series labels.Labels
		p.Labels(&series)
		_, _, value := p.Series()
		h.append(series, target, value)
	}
	h.append(labels.FromStrings(model.MetricNameLabel, "up"), target, 1)
}

// Down stores that a target could not be scraped.
func (h *History) Down(job, instance string, others ...string) {
	h.append(labels.FromStrings(append(others, model.MetricNameLabel, "up")...), labels.FromStrings("job", job, "instance", instance), 0)
}

func (h *History) append(series, target labels.Labels, value float64) {
	b := labels.NewBuilder(series)
	target.Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
	h.memory.append(b.Labels(), sample{h.now.UnixMilli(), value})
}

// Query evaluates an expression at the current time.
func (h *History) Query(expr string) promql.Vector {
	h.t.Helper()
	query, err := h.engine.NewInstantQuery(h.t.Context(), h.memory, nil, expr, h.now)
	require.NoError(h.t, err, expr)
	defer query.Close()
	result := query.Exec(h.t.Context())
	require.NoError(h.t, result.Err, expr)
	warnings, _ := result.Warnings.CountWarningsAndInfo() // infos are allowed, such as that a counter's name does not end in _total
	require.Zero(h.t, warnings, "%s: %v", expr, result.Warnings)
	vector, err := result.Vector()
	require.NoError(h.t, err, expr)
	return append(promql.Vector(nil), vector...)
}

// Parser parses the queries. It enables `anchored`, with which increase counts exactly the growth between samples.
func Parser() parser.Parser {
	return parser.NewParser(parser.Options{EnableExtendedRangeSelectors: true})
}
