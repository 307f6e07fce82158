// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// A Span is the interval between two readings. Before is nil at first: then no rate is known.
type Span struct{ Before, Now *Reading }

// Seconds returns the length of the span, 0 without a beginning.
func (s Span) Seconds() float64 {
	if s.Before == nil {
		return 0
	}
	return s.Now.At.Sub(s.Before.At).Seconds()
}

// Since returns the counters of a source at the beginning of the span, and how many seconds ago that was, 0 if there is
// nothing to compare with. The counters of a component that is younger than the earlier reading began at 0.
func (s Span) Since(of *sources.Source) (earlier inspect.Flow, seconds float64) {
	if s.Before == nil {
		return earlier, 0
	}
	began := s.Before.At
	if !s.Before.has(of) {
		began = of.Since
	}
	if s.Now.At.Sub(began) < leastAge {
		return s.Before.Flows[of], 0
	}
	return s.Before.Flows[of], s.Now.At.Sub(began).Seconds()
}

// DestinationBefore returns the counters of a destination at the beginning of the span.
func (s Span) DestinationBefore(of *sources.Source, i int, name string) (earlier inspect.Destination) {
	if s.Before == nil {
		return earlier
	}
	if all := s.Before.Deliveries[of].Destinations; i < len(all) && all[i].Name == name {
		return all[i]
	}
	return earlier
}

// Refused returns how often a component refused data, or its data was refused.
func (s Span) Refused(of *sources.Source) int64 {
	earlier, seconds := s.Since(of)
	flow, shown := s.Now.Flows[of]
	if !shown || seconds == 0 || flow.Refused <= 0 {
		return 0
	}
	return flow.Refused - earlier.Refused
}

// Rates are numbers per second, nil if unknown.
type Rates struct {
	In        *float64 `json:"in"`
	Out       *float64 `json:"out"`
	Limited   *float64 `json:"limited"`
	Dropped   *float64 `json:"dropped"`
	Refused   *float64 `json:"refused"`
	WireBytes *float64 `json:"wire_bytes"`
	RawBytes  *float64 `json:"raw_bytes"`

	Signals map[string]*float64 `json:"-"` // the output by signal, for a source that counts signals separately
}

// Rates returns the rates of a source.
func (s Span) Rates(of *sources.Source) Rates {
	a, seconds := s.Since(of)
	b := s.Now.Flows[of]
	per := func(a, b int64) *float64 {
		if seconds == 0 || a < 0 || b < a {
			return nil
		}
		return known.Number(float64(b-a) / seconds)
	}
	var signals map[string]*float64
	for signal, now := range b.Signals {
		if signals == nil {
			signals = map[string]*float64{}
		}
		signals[signal] = per(a.Signals[signal].Out, now.Out)
	}
	return Rates{
		In: per(a.In, b.In), Out: per(a.Out, b.Out), Limited: per(a.Limited, b.Limited), Refused: per(a.Refused, b.Refused),
		Dropped: per(Total(a.Dropped), Total(b.Dropped)), WireBytes: per(a.WireBytes, b.WireBytes), RawBytes: per(a.RawBytes, b.RawBytes),
		Signals: signals,
	}
}

// With returns the sum of the rates of two instances of a component.
func (r Rates) With(other Rates) Rates {
	if other.Signals == nil { // a source that counts signals separately is the only one of its component with an output
		other.Signals = r.Signals
	}
	return Rates{
		In: known.Sum(r.In, other.In), Out: known.Sum(r.Out, other.Out), Limited: known.Sum(r.Limited, other.Limited),
		Dropped: known.Sum(r.Dropped, other.Dropped), Refused: known.Sum(r.Refused, other.Refused),
		WireBytes: known.Sum(r.WireBytes, other.WireBytes), RawBytes: known.Sum(r.RawBytes, other.RawBytes),
		Signals: other.Signals,
	}
}

// Total returns the sum of counts by reason.
func Total(counts map[string]int64) (sum int64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
