// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import "sync"

// outbox has the answers to be sent, in the order in which they came. An outbox of an idle stream takes next to no
// memory.
type outbox struct {
	// some has a token if there may be answers: whoever waits takes it first.
	some chan struct{}

	mu      sync.Mutex
	answers []answer
	first   int // those before it are taken
}

func newOutbox() outbox { return outbox{some: make(chan struct{}, 1)} }

// put never waits: slots limit how many there are.
func (o *outbox) put(a answer) {
	o.mu.Lock()
	o.answers = append(o.answers, a)
	o.mu.Unlock()
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.some <- struct{}{}:
	default: // there is a token already
	}
}

// take returns the next answer, if there is one.
func (o *outbox) take() (a answer, ok bool) {
	const spare = 16 // capacity that an empty outbox keeps
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
