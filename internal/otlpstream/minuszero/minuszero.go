// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package minuszero keeps the sign of zeros when metrics are encoded.
//
// pdata's marshaler omits numbers that are zero, in fields that are not optional, and takes -0 for one. So it is given a copy of the
// metrics with a mark in place of each -0, and the marks are replaced once they are encoded. Few metrics have any.
package minuszero

import (
	"encoding/binary"
	"iter"
	"math"
	"math/rand/v2"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"
)

const sign = 1 << 63

// Marked are metrics with a mark in place of each -0 that would be lost.
type Marked struct {
	Metrics pmetric.Metrics
	mark    uint64
}

// Mark returns md marked, nil if it has nothing to lose. Nothing of md is kept.
func Mark(md pmetric.Metrics) *Marked {
	if !has(md, sign) {
		return nil
	}
	m := &Marked{Metrics: pmetric.NewMetrics(), mark: newMark()}
	for has(md, m.mark) {
		m.mark = newMark()
	}
	md.CopyTo(m.Metrics)
	for v, set := range numbers(m.Metrics) {
		if math.Float64bits(v) == sign {
			set(math.Float64frombits(m.mark))
		}
	}
	return m
}

// newMark is a NaN that hardly anybody has.
func newMark() uint64 { return rand.Uint64() | math.Float64bits(math.NaN()) } //nolint:gosec // it is no secret

func has(md pmetric.Metrics, bits uint64) bool {
	for v := range numbers(md) {
		if math.Float64bits(v) == bits {
			return true
		}
	}
	return false
}

// numbers are those that are left out when they are zero, each with what sets it.
func numbers(md pmetric.Metrics) iter.Seq2[float64, func(float64)] {
	return func(yield func(float64, func(float64)) bool) {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					if !numbersOf(m, yield) {
						return
					}
				}
			}
		}
	}
}

func numbersOf(m pmetric.Metric, yield func(float64, func(float64)) bool) bool {
	switch m.Type() {
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			if !yield(p.Sum(), p.SetSum) {
				return false
			}
			for _, q := range p.QuantileValues().All() {
				if !yield(q.Quantile(), q.SetQuantile) || !yield(q.Value(), q.SetValue) {
					return false
				}
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			if !yield(p.ZeroThreshold(), p.SetZeroThreshold) {
				return false
			}
		}
	default: // all their numbers are optional
	}
	return true
}

// message says where such numbers are in an encoded one.
type message struct {
	doubles map[protowire.Number]bool
	inner   map[protowire.Number]*message
}

// request is opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest.
var request = within(1, within(2, within(2, &message{inner: map[protowire.Number]*message{
	10: within(1, &message{doubles: map[protowire.Number]bool{14: true}}),
	11: within(1, &message{
		doubles: map[protowire.Number]bool{5: true},
		inner:   map[protowire.Number]*message{6: {doubles: map[protowire.Number]bool{1: true, 2: true}}},
	}),
}})))

func within(field protowire.Number, m *message) *message {
	return &message{inner: map[protowire.Number]*message{field: m}}
}

// Restore puts -0 in the place of each mark in the encoded request.
func (m *Marked) Restore(encoded []byte) { request.restore(encoded, m.mark) }

func (m *message) restore(b []byte, mark uint64) {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return // pdata makes none like that
		}
		size := protowire.ConsumeFieldValue(field, kind, b[n:])
		if size < 0 {
			return
		}
		value := b[n : n+size]
		b = b[n+size:]
		switch inner := m.inner[field]; {
		case kind == protowire.BytesType && inner != nil:
			content, _ := protowire.ConsumeBytes(value)
			inner.restore(content, mark)
		case kind == protowire.Fixed64Type && m.doubles[field] && binary.LittleEndian.Uint64(value) == mark:
			binary.LittleEndian.PutUint64(value, sign)
		}
	}
}
