// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"path/filepath"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/queue"
)

// elsewhere is what exporters that were shut down left on disk. After a reload, the exporter of the same name may have
// its queue in another place, and then nobody sends what is in the first.
var elsewhere = places{of: map[component.ID][]place{}}

type places struct {
	mu sync.Mutex
	of map[component.ID][]place
}

// leave records what is left in a place.
func (p *places) leave(id component.ID, left place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of[id] = append(p.without(id, left.where), left)
}

// elsewhereThan forgets places that are in use again, and returns what is left in others.
func (p *places) elsewhereThan(id component.ID, here ...string) []place {
	p.mu.Lock()
	defer p.mu.Unlock()
	others := p.without(id, here...)
	if p.of[id] = others; len(others) == 0 {
		delete(p.of, id)
	}
	return others
}

func (p *places) without(id component.ID, where ...string) (others []place) {
	for _, left := range p.of[id] {
		if !slices.Contains(where, left.where) {
			others = append(others, left)
		}
	}
	return others
}

// place is where a queue was left, and how much it has.
type place struct {
	where string
	rest  queue.Rest
}

func (p *place) fields() []zap.Field {
	return []zap.Field{
		zap.String("place", p.where), zap.Int("requests", p.rest.Blocks), zap.Int64("bytes", p.rest.Bytes),
		zap.Int64("samples", p.rest.Samples), zap.Int64("histograms", p.rest.Histograms),
	}
}

// leaveStored records what stays on disk.
func (e *remoteWrite) leaveStored() {
	if e.stored == "" {
		return
	}
	left := place{where: e.stored, rest: e.queue.Rest()}
	if left.rest.Blocks == 0 {
		return
	}
	elsewhere.leave(e.set.ID, left)
	e.set.Logger.Info("shut down with data in the queue, which is on disk: the next start sends it", left.fields()...)
}

// logElsewhere logs what exporters of this name left in places that this one does not use.
func (e *remoteWrite) logElsewhere() {
	here := []string{e.stored}
	if e.stored == e.ownFolder() { // a file of file_storage there is taken over
		here = append(here, filepath.Join(e.cfg.Queue.Directory, fileStorageName(e.set.ID)))
	}
	for _, left := range elsewhere.elsewhereThan(e.set.ID, here...) {
		e.set.Logger.Warn("the queue is in another place than before a reload: what is left there is not sent until the configuration has that place again, "+
			"and takes its room", left.fields()...)
	}
}
