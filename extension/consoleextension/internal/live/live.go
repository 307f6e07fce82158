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
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/redact"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inspect"
)

const (
	maxWatching = 4 // who look at data at a time
	// watchFor is how long one look waits for a batch. Pages look again.
	watchFor = 8 * time.Second
	// A look lets so many batches pass at most, and waits so long for them, before it shows the last.
	maxPassed  = 3
	passWithin = time.Second
)

type (
	liveRequest struct {
		Node string `json:"node"`
	}

	liveJSON struct {
		Node string `json:"node"`
		// Place says where in the component it was seen.
		Place   string           `json:"place"`
		Batches []inspect.Glance `json:"batches"` // one, or none while nothing passes
	}
)

// Places where components show data.
const (
	placeOut    = "out"    // what a receiver hands on
	placeAround = "around" // before and after a processor
	placeIn     = "in"     // what an exporter takes
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

// View shows data of all that have a tap.
type View struct {
	sources  *sources.Registry
	watching chan struct{} // has a place for each look
	watchFor time.Duration
}

// New returns a view of these.
func New(of *sources.Registry) *View {
	return &View{sources: of, watching: make(chan struct{}, maxWatching), watchFor: watchFor}
}

// Answer waits for a batch in a component and shows some of its points. Nothing is looked at without such a request.
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

// anyOf is one of the next batches, by chance. Targets are scraped at regular times: the first batch would always be of one
// that nothing precedes closely, and what follows another by a millisecond would never be seen.
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

// first waits at all instances of a component for the first batch that passes one.
func first(ctx context.Context, taps []*inspect.Tap) (inspect.Glance, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the other looks
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

// hideGlance takes secrets out of what was seen.
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
