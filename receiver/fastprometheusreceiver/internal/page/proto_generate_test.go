// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	dto "github.com/prometheus/prometheus/prompb/io/prometheus/client"
)

// A protoGenerator makes pages in protobuf: native and classic histograms, NaNs of any payload, and families that are
// repeated or change their type.
type protoGenerator struct {
	*rand.Rand

	families []*dto.MetricFamily
}

func newProtoGenerator(seed uint64) *protoGenerator {
	g := &protoGenerator{Rand: rand.New(rand.NewPCG(seed, 12))}
	for range 1 + g.IntN(6) {
		g.insert()
	}
	return g
}

func (g *protoGenerator) insert() {
	f := &dto.MetricFamily{Name: one(g.Rand, "a", "h", "h", "n", "c_total", "s")}
	f.Type = one(g.Rand, dto.MetricType_GAUGE, dto.MetricType_COUNTER, dto.MetricType_SUMMARY, dto.MetricType_HISTOGRAM, dto.MetricType_HISTOGRAM, dto.MetricType_UNTYPED)
	if g.IntN(3) == 0 {
		f.Help = "Help."
	}
	for range 1 + g.IntN(4) {
		var m dto.Metric
		for _, n := range []string{"id", "x", "zone"} {
			if g.IntN(2) == 0 {
				m.Label = append(m.Label, dto.LabelPair{Name: n, Value: fmt.Sprint("v", g.IntN(3))})
			}
		}
		if g.IntN(12) == 0 {
			m.TimestampMs = 1_600_000_000_500
		}
		f.Metric = append(f.Metric, m)
	}
	g.families = slices.Insert(g.families, g.IntN(len(g.families)+1), f)
}

func (g *protoGenerator) number() float64 {
	if g.IntN(8) == 0 {
		return math.Float64frombits(one(g.Rand, notANumber...))
	}
	return float64(g.IntN(1000))
}

func (g *protoGenerator) change() {
	n := len(g.families)
	i := g.IntN(n)
	f := g.families[i]
	switch g.IntN(7) {
	case 0, 1:
		g.insert()
	case 2:
		if n > 1 {
			g.families = slices.Delete(g.families, i, i+1)
		}
	case 3:
		g.families = slices.Insert(g.families, i, g.families[g.IntN(n)])
	case 4:
		if m := len(f.Metric); m > 1 {
			g.families[i] = &dto.MetricFamily{Name: f.Name, Type: f.Type, Help: f.Help, Metric: slices.Delete(slices.Clone(f.Metric), m-1, m)}
		}
	case 5:
		g.Shuffle(n, func(i, j int) { g.families[i], g.families[j] = g.families[j], g.families[i] })
	default:
	}
}

func (g *protoGenerator) page() string {
	switch g.IntN(20) {
	case 0:
		return errorPage
	case 1:
		return ""
	default:
	}
	var b strings.Builder
	for _, f := range g.families {
		out := *f
		out.Metric = slices.Clone(f.Metric)
		for i := range out.Metric {
			g.fill(f.Type, &out.Metric[i])
		}
		b.WriteString(framed(&out))
	}
	if g.IntN(20) == 0 {
		b.WriteString("\x7f\x0a\x01a")
	}
	return b.String()
}

func (g *protoGenerator) fill(typ dto.MetricType, m *dto.Metric) {
	switch typ {
	case dto.MetricType_COUNTER:
		m.Counter = &dto.Counter{Value: g.number()}
	case dto.MetricType_GAUGE:
		m.Gauge = &dto.Gauge{Value: g.number()}
	case dto.MetricType_SUMMARY:
		m.Summary = &dto.Summary{SampleCount: uint64(g.IntN(100)), SampleSum: g.number()}
		for i := range g.IntN(3) {
			m.Summary.Quantile = append(m.Summary.Quantile, dto.Quantile{Quantile: float64(i), Value: g.number()})
		}
	case dto.MetricType_HISTOGRAM:
		h := &dto.Histogram{SampleCount: uint64(g.IntN(100)), SampleSum: g.number()}
		for i := range g.IntN(3) {
			h.Bucket = append(h.Bucket, dto.Bucket{UpperBound: float64(i), CumulativeCount: uint64(i)})
		}
		switch g.IntN(4) {
		case 0, 1:
			h.Schema, h.ZeroThreshold, h.PositiveSpan, h.PositiveDelta = 1, 1, []dto.BucketSpan{{Offset: int32(g.IntN(3)), Length: 2}}, []int64{1, int64(g.IntN(3))}
		case 2:
			h.SampleCount, h.SampleCountFloat = 0, g.number()
			h.ZeroThreshold, h.PositiveSpan, h.PositiveCount = 1, []dto.BucketSpan{{Length: 1}}, []float64{g.number()}
		default:
		}
		m.Histogram = h
	default:
		m.Untyped = &dto.Untyped{Value: g.number()}
	}
}
