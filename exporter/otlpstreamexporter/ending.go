// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"sync"
	"time"
)

// ending is the common shutdown of the exporters of all signals of a configuration. The Collector shuts them down one
// after the other, so separately each would wait for a server that is down as long as all should together.
type ending struct {
	mu    sync.Mutex
	alive int
	begun time.Time // when the first one began to end, while others run
}

func (e *ending) join() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.alive++
}

// begin returns what is left of a timeout that started when the first of them called it.
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
		e.begun = time.Time{} // as for a new configuration
	}
}
