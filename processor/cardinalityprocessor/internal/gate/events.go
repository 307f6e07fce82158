// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"sync"
	"time"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// events are the latest one-time events.
type events struct {
	mu   sync.Mutex
	last []inspect.Event
}

const maxEvents = 100

func (e *events) Add(at time.Time, kind, rule, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = slices.Insert(e.last, 0, inspect.Event{At: at, Kind: kind, Rule: rule, Text: text})
	e.last = e.last[:min(len(e.last), maxEvents)]
}

func (e *events) List() []inspect.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.last)
}
