// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
)

// reloadTime is how long the data of an exporter waits for the next one of its name: a reload of the configuration
// stops one and starts the other.
const reloadTime = time.Minute

// left is what exporters that were shut down had in memory.
var left = legacies{of: map[heir]*queue.Legacy{}}

type legacies struct {
	mu sync.Mutex
	of map[heir]*queue.Legacy
}

// heir is the exporter and the destination that data was left for.
type heir struct {
	exporter    component.ID
	destination string
}

// leave keeps an exporter's data for the next one of its name.
func (l *legacies) leave(id component.ID, rest *queue.Legacy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range rest.Destinations() {
		l.of[heir{id, d}] = rest
	}
	time.AfterFunc(reloadTime, func() { l.forget(id, rest) })
}

func (l *legacies) forget(id component.ID, rest *queue.Legacy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range rest.Destinations() {
		if h := (heir{id, d}); l.of[h] == rest {
			delete(l.of, h)
		}
	}
}

// take returns what an exporter left for these destinations. Others may have taken their part in an earlier reload.
func (l *legacies) take(id component.ID, destinations []string) (rest []*queue.Legacy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*queue.Legacy
	for _, d := range destinations {
		if r := l.of[heir{id, d}]; r != nil && !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	for _, r := range all {
		var served []string
		for _, d := range r.Destinations() {
			if l.of[heir{id, d}] != r {
				served = append(served, d)
			}
		}
		rest = append(rest, r.Without(served))
	}
	for _, d := range destinations {
		delete(l.of, heir{id, d})
	}
	return rest
}
