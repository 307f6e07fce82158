// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package balance adds up what all components do.
//
// Data that has been received once is counted once, wherever it is sent: In is what was received from outside, and Out what the slowest of several
// destinations that all get it has acknowledged. So In is never less than Out, except for data that waited.
package balance

import (
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/delivery"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/service"
)

// Totals are the sums over all components.
type Totals struct {
	In           *float64 `json:"in_per_second"`
	Limited      *float64 `json:"limited_per_second"`
	Out          *float64 `json:"out_per_second"`
	Destinations int      `json:"destinations"` // those that Out is the sum of
	Dropped      *float64 `json:"dropped_per_second"`
	WireBytes    *float64 `json:"wire_bytes_per_second"`
	PerSample    *float64 `json:"bytes_per_sample"`
	Received     *float64 `json:"received_wire_bytes_per_second"`
	Queued       int64    `json:"queued_bytes"`

	Targets meter.Counts  `json:"-"`
	Process meter.Process `json:"-"`
}

// Of returns the totals of a span.
func Of(span meter.Span, graph *service.Graph) Totals {
	t := Totals{Process: span.Process()}
	var paid *float64 // samples to which WireBytes belong
	for of, flow := range span.Now.Flows {
		t.Queued += max(0, flow.QueuedBytes)
		t.Targets.Add(flow.Targets)
		f := span.Rates(of)
		if of.Kind != component.KindExporter {
			t.Dropped = known.Sum(t.Dropped, f.Dropped)
		}
		switch of.Kind {
		case component.KindReceiver:
			t.In = known.Sum(t.In, f.In)
			t.Received = known.Sum(t.Received, f.WireBytes)
		case component.KindExporter:
			t.WireBytes = known.Sum(t.WireBytes, f.WireBytes)
			if f.WireBytes != nil {
				paid = known.Sum(paid, f.Out)
			}
		}
	}
	b := sheet{span, graph}
	// Data that exporters of this process send to its own receivers was received before.
	if own := b.ownTraffic(); own != nil && t.In != nil {
		t.In = known.Number(max(0, *t.In-*own))
	}
	t.Limited = b.limited()
	t.Out, t.Destinations = b.out()
	t.Dropped = known.Sum(t.Dropped, b.lost())
	if t.WireBytes != nil && paid != nil && *paid > 0 && b.allWell() {
		t.PerSample = known.Number(*t.WireBytes / *paid)
	}
	return t
}

// allWell reports whether all requests of the span were accepted at the first attempt: only then, their bytes are the
// bytes of what was acknowledged.
func (b sheet) allWell() bool {
	for from := range b.span.Now.Deliveries {
		for _, d := range delivery.Of(b.span, from) {
			if d.LostRate != nil && *d.LostRate > 0 || d.RetryRate != nil && *d.RetryRate > 0 {
				return false
			}
		}
	}
	return true
}
