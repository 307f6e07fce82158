// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// A Span is what lies between two readings. Before is nil at first: then no rate is known.
type Span struct{ Before, Now *Reading }

// Seconds is how long it is, 0 without a beginning.
func (s Span) Seconds() float64 {
	if s.Before == nil {
		return 0
	}
	return s.Now.At.Sub(s.Before.At).Seconds()
}

// Since returns what a source had counted at the beginning, and how many seconds ago that was: 0 if there is nothing to
// compare with. A component that is younger than the earlier reading began with nothing.
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

// DestinationBefore is what a destination of a source had counted at the beginning.
func (s Span) DestinationBefore(of *sources.Source, i int, name string) (earlier inspect.Destination) {
	if s.Before == nil {
		return earlier
	}
	if all := s.Before.Deliveries[of].Destinations; i < len(all) && all[i].Name == name {
		return all[i]
	}
	return earlier
}

// Refused is how often a component refused, or was refused.
func (s Span) Refused(of *sources.Source) int64 {
	earlier, seconds := s.Since(of)
	flow, shown := s.Now.Flows[of]
	if !shown || seconds == 0 || flow.Refused <= 0 {
		return 0
	}
	return flow.Refused - earlier.Refused
}

// Rates are per second. What is nil is not known.
type Rates struct {
	In        *float64 `json:"in"`
	Out       *float64 `json:"out"`
	Limited   *float64 `json:"limited"`
	Dropped   *float64 `json:"dropped"`
	Refused   *float64 `json:"refused"`
	WireBytes *float64 `json:"wire_bytes"`
	RawBytes  *float64 `json:"raw_bytes"`

	Signals map[string]*float64 `json:"-"` // what goes out, of a source that tells several apart
}

// Rates returns what a source has counted, as rates.
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

// With returns the rates of two instances of a component together.
func (r Rates) With(other Rates) Rates {
	if other.Signals == nil { // who tells signals apart is the only source of its component that hands on anything
		other.Signals = r.Signals
	}
	return Rates{
		In: known.Sum(r.In, other.In), Out: known.Sum(r.Out, other.Out), Limited: known.Sum(r.Limited, other.Limited),
		Dropped: known.Sum(r.Dropped, other.Dropped), Refused: known.Sum(r.Refused, other.Refused),
		WireBytes: known.Sum(r.WireBytes, other.WireBytes), RawBytes: known.Sum(r.RawBytes, other.RawBytes),
		Signals: other.Signals,
	}
}

// Total is the sum of what is counted by reason.
func Total(counts map[string]int64) (sum int64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
