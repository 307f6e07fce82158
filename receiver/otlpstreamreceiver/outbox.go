// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import "sync"

// outbox is the answers that wait to be sent, in the order in which they came. One of thousands of idle streams takes next to no
// memory by it.
type outbox struct {
	// some has a token when there may be answers: one that waits for them takes it first.
	some chan struct{}

	mu      sync.Mutex
	answers []answer
	first   int // of those that are not taken
}

func newOutbox() outbox { return outbox{some: make(chan struct{}, 1)} }

// put never waits: slots bound how many there are.
func (o *outbox) put(a answer) {
	o.mu.Lock()
	o.answers = append(o.answers, a)
	o.mu.Unlock()
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.some <- struct{}{}:
	default: // it has one
	}
}

// take returns the next answer, if there is one.
func (o *outbox) take() (a answer, ok bool) {
	const spare = 16 // answers that an empty one has room for
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.first == len(o.answers) {
		return answer{}, false
	}
	a, o.answers[o.first] = o.answers[o.first], answer{}
	if o.first++; o.first < len(o.answers) {
		o.signal()
		return a, true
	}
	if o.first, o.answers = 0, o.answers[:0]; cap(o.answers) > spare {
		o.answers = nil
	}
	return a, true
}
