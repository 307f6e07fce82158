// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package live shows some of the data that passes a component while somebody looks at it.
package live

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/redact"
)

const (
	maxWatching = 4 // requests that look at data at a time
	// watchFor is how long a request waits for a batch. Pages repeat the request.
	watchFor = 8 * time.Second
	// A request lets at most maxPassed batches pass, for at most passWithin, before it shows one.
	maxPassed  = 3
	passWithin = time.Second
)

type (
	liveRequest struct {
		Node string `json:"node"`
	}

	liveJSON struct {
		Node string `json:"node"`
		// Place is where in the component the data was seen.
		Place   string           `json:"place"`
		Batches []inspect.Glance `json:"batches"` // one, or none while nothing passes
	}
)

// Places where components show data.
const (
	placeOut    = "out"    // a receiver's output
	placeAround = "around" // before and after a processor
	placeIn     = "in"     // an exporter's input
)

func placeOf(kind component.Kind) string {
	switch kind {
	case component.KindReceiver:
		return placeOut
	case component.KindExporter:
		return placeIn
	}
	return placeAround
}

// View shows data of all components that have a tap.
type View struct {
	sources  *sources.Registry
	watching chan struct{} // one slot for each request
	watchFor time.Duration
}

// New returns a view of these sources.
func New(of *sources.Registry) *View {
	return &View{sources: of, watching: make(chan struct{}, maxWatching), watchFor: watchFor}
}

// Answer waits for a batch in a component and shows some of its points. Without such a request, no data is inspected.
func (v *View) Answer(r *http.Request) (any, error) {
	var asked liveRequest
	if err := answer.Decode(r, &asked); err != nil {
		return nil, err
	}
	var taps []*inspect.Tap
	out := liveJSON{Node: asked.Node, Batches: []inspect.Glance{}}
	for _, s := range v.sources.All() {
		if s.Node() == asked.Node && s.Tap != nil {
			taps, out.Place = append(taps, s.Tap), placeOf(s.Kind)
		}
	}
	if len(taps) == 0 {
		return nil, answer.NotFound("no component %q shows its data", prose.Cut(asked.Node, 100))
	}
	select {
	case v.watching <- struct{}{}:
		defer func() { <-v.watching }()
	default:
		return nil, errWatching
	}
	ctx, cancel := context.WithTimeout(r.Context(), v.watchFor)
	defer cancel()
	glance, err := anyOf(ctx, taps)
	if errors.Is(err, context.DeadlineExceeded) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	hideGlance(&glance)
	out.Batches = append(out.Batches, glance)
	return out, nil
}

var errWatching = answer.Busy("others look at data already: try again")

// anyOf returns one of the next batches at random. Targets are scraped at regular times, so the first batch would
// always be from a target after a pause, and never from one that follows another by a millisecond.
func anyOf(ctx context.Context, taps []*inspect.Tap) (inspect.Glance, error) {
	glance, err := first(ctx, taps)
	if err != nil {
		return glance, err
	}
	ctx, cancel := context.WithTimeout(ctx, passWithin)
	defer cancel()
	for range rand.IntN(maxPassed + 1) { //nolint:gosec // nothing depends on nobody guessing it
		later, err := first(ctx, taps)
		if err != nil {
			break
		}
		glance = later
	}
	return glance, nil
}

// first waits for the first batch that passes any instance of a component.
func first(ctx context.Context, taps []*inspect.Tap) (inspect.Glance, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the other requests
	defer cancel()
	type look struct {
		glance inspect.Glance
		err    error
	}
	looks := make(chan look, len(taps))
	for _, tap := range taps {
		go func() {
			glance, ok, err := tap.Look(ctx)
			if !ok {
				err = errWatching
			}
			looks <- look{glance, err}
		}()
	}
	var last error
	for range taps {
		got := <-looks
		if got.err == nil {
			return got.glance, nil
		}
		last = got.err
	}
	return inspect.Glance{}, last
}

// hideGlance removes secrets from the data.
func hideGlance(g *inspect.Glance) {
	for i := range g.Points {
		hidePoint(&g.Points[i].Point)
		if after := g.Points[i].After; after != nil {
			hidePoint(after)
		}
	}
}

func hidePoint(p *inspect.Point) {
	p.Name, p.Value = redact.Text(p.Name), redact.Text(p.Value)
	for _, labels := range [][]inspect.Label{p.Resource, p.Attributes} {
		for i := range labels {
			l := &labels[i]
			if l.Value = redact.Text(l.Value); l.Value != "" && redact.Secret(l.Name) {
				l.Value = redact.Mark
			}
		}
	}
}
