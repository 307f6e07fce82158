// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package meter reads the counters of components, and computes rates from them.
//
// Components count, and know no rates. A [Meter] keeps two earlier readings, so that there always is one to compare the
// present with; the interval between two is a [Span].
package meter

import (
	"time"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// A Reading holds the counters of all components at a moment. It never changes.
type Reading struct {
	At         time.Time
	Flows      map[*sources.Source]inspect.Flow
	Deliveries map[*sources.Source]inspect.Delivery

	process process
}

// has reports whether the source existed at the reading.
func (r *Reading) has(s *sources.Source) bool {
	_, flows := r.Flows[s]
	_, delivers := r.Deliveries[s]
	return flows || delivers
}

// A Meter reads the counters of all sources.
type Meter struct {
	sources *sources.Registry
	now     func() time.Time
	past    Past[*Reading]
}

// New returns a meter of these sources.
func New(of *sources.Registry, now func() time.Time) *Meter { return &Meter{sources: of, now: now} }

// Look takes a reading, and returns the span from an earlier reading to this one.
func (m *Meter) Look() Span {
	now := m.read()
	before, _ := m.past.Since(now.At, now)
	return Span{before, now}
}

func (m *Meter) read() *Reading {
	all := m.sources.All()
	r := &Reading{
		At: m.now(), Flows: make(map[*sources.Source]inspect.Flow, len(all)), Deliveries: map[*sources.Source]inspect.Delivery{}, process: readProcess(),
	}
	for _, s := range all {
		if s.Flow != nil {
			r.Flows[s] = s.Flow()
		}
		if s.Delivery != nil {
			r.Deliveries[s] = s.Delivery()
		}
	}
	return r
}
