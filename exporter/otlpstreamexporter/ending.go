// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"sync"
	"time"
)

// ending is what the exporters of all signals of one configuration share when they end. The Collector shuts them down one after the
// other, so each on its own would wait for a server that is away as long as all are to wait together.
type ending struct {
	mu    sync.Mutex
	alive int
	begun time.Time // of the first that ends, while others are alive
}

func (e *ending) join() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.alive++
}

// begin returns what is left of a time that began when the first of them did this.
func (e *ending) begin(timeout time.Duration) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.begun.IsZero() {
		e.begun = time.Now()
	}
	return timeout - time.Since(e.begun)
}

func (e *ending) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.alive--; e.alive == 0 {
		e.begun = time.Time{} // as if the configuration were new
	}
}
