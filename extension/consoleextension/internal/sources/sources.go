// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package sources knows which components register, and their names.
package sources

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// A Source is a registered component.
type Source struct {
	inspect.Source

	Since    time.Time // when its counters were 0
	instance int       // from 1: a processor has one for each pipeline
	several  atomic.Bool
}

// Name returns the component's ID in the configuration, and which instance it is if there are several.
func (s *Source) Name() string {
	switch {
	case s.Several() && s.Pipeline != "":
		return s.ID.String() + " in " + s.Pipeline
	case s.instance > 1:
		return s.ID.String() + "#" + strconv.Itoa(s.instance)
	}
	return s.ID.String()
}

// Several reports whether the component has other instances.
func (s *Source) Several() bool { return s.several.Load() }

// Node returns the ID of the component's node in the graph.
func (s *Source) Node() string { return NodeID(s.Kind, s.ID) }

// NodeID returns the ID of a component's node in the graph.
func NodeID(kind component.Kind, id component.ID) string {
	return KindName(kind) + "/" + id.String()
}

// A Registry holds the registered sources.
type Registry struct {
	now func() time.Time

	mu  sync.Mutex
	all []*Source
}

// NewRegistry returns an empty registry.
func NewRegistry(now func() time.Time) *Registry { return &Registry{now: now} }

// Register adds a source until unregister is called.
func (r *Registry) Register(s inspect.Source) (unregister func()) {
	entry := &Source{Source: s, Since: r.now(), instance: 1}
	r.mu.Lock()
	defer r.mu.Unlock()
	for slices.ContainsFunc(r.all, func(other *Source) bool {
		same := other.Node() == entry.Node() && other.Signal == entry.Signal
		if same {
			other.several.Store(true)
			entry.several.Store(true)
		}
		return same && other.instance == entry.instance
	}) {
		entry.instance++
	}
	// Readers may still use the old list.
	r.all = append(slices.Clone(r.all), entry)
	slices.SortStableFunc(r.all, func(a, b *Source) int {
		return cmp.Or(cmp.Compare(a.Node(), b.Node()), cmp.Compare(a.Signal, b.Signal), cmp.Compare(a.Pipeline, b.Pipeline), cmp.Compare(a.instance, b.instance))
	})
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = slices.DeleteFunc(slices.Clone(r.all), func(s *Source) bool { return s == entry })
	}
}

// All returns the sources, to be read only.
func (r *Registry) All() []*Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}
