// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import "sync"

// state is where an item is. Each is in exactly one place.
type state uint8

const (
	queued state = iota
	pending
	acked
	dropped
)

// dropReason is why items were dropped.
type dropReason uint8

const (
	dropAckTimeout dropReason = iota
	dropCanceled
	dropQueueFull
	dropRejected
	dropRetriesExhausted
	dropShutdown
	dropStreamLost
	dropTooLarge
	dropReasons
)

func (r dropReason) String() string {
	return [...]string{
		"ack_timeout", "canceled", "queue_full", "rejected", "retries_exhausted", "shutdown", "stream_lost", "too_large",
	}[r]
}

// balance is what became of all items at one moment.
type balance struct {
	received, queued, pending, acked int64
	dropped                          [dropReasons]int64
	// requests and bytes are what is pending, counted otherwise.
	requests, bytes int64
}

// account knows where every item of a destination is. Received is the sum of all other numbers at any moment.
type account struct {
	mu  sync.Mutex
	now balance
	// rested is called when nothing is pending any more. With it, nothing is sent.
	rested func()
}

// rest has nothing sent any more, and f called, perhaps more than once, when nothing is pending.
func (a *account) rest(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rested = f
	a.settle()
}

func (a *account) settle() {
	if a.rested != nil && a.now.requests == 0 {
		a.rested()
	}
}

// send moves a delivery to what is pending, and tells whether it may be sent.
func (a *account) send(d *delivery) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rested != nil {
		return false
	}
	a.moveTo(d, pending)
	return true
}

// receive notes items that enter the queue, refuse that they did not after all.
func (a *account) receive(items int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now.received += int64(items)
	a.now.queued += int64(items)
}

func (a *account) refuse(items int) { a.receive(-items) }

// overflow notes that items found no room here, while another destination has taken them.
func (a *account) overflow(items int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now.queued -= int64(items)
	a.now.dropped[dropQueueFull] += int64(items)
}

// move notes where a delivery's items are now. What is settled stays so. A server may take a request and
// reject some of its items.
func (a *account) move(d *delivery, to state) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.moveTo(d, to)
	a.settle()
}

func (a *account) moveTo(d *delivery, to state) {
	n := int64(d.items)
	switch {
	case d.state == to || d.settled:
		return
	case d.state == queued:
		a.now.queued -= n
	case d.state == pending:
		a.now.pending -= n
		a.now.requests--
		a.now.bytes -= int64(len(d.data))
	}
	d.state, d.settled = to, to == acked || to == dropped
	switch to {
	case queued:
		a.now.queued += n
	case pending:
		a.now.pending += n
		a.now.requests++
		a.now.bytes += int64(len(d.data))
	case acked:
		rejected := int64(min(d.rejected, d.items))
		a.now.acked += n - rejected
		a.now.dropped[dropRejected] += rejected
	case dropped:
		a.now.dropped[d.reason] += n
	}
}

func (a *account) drop(d *delivery, why dropReason) {
	d.reason = why
	a.move(d, dropped)
}

// keep leaves a delivery to the queue, for another run of the exporter.
func (a *account) keep(d *delivery) {
	a.move(d, queued)
	a.mu.Lock()
	defer a.mu.Unlock()
	d.settled = true
}

// divide takes the items of a part out of a delivery that is sent in parts. Both are queued.
func (a *account) divide(d, part *delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	part.items = min(part.items, d.items)
	d.items -= part.items
}

// isSettled tells whether a delivery has found its end.
func (a *account) isSettled(d *delivery) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return d.settled
}

// reject notes how many items of a delivery the server will have rejected when it has taken the others.
func (a *account) reject(d *delivery, items int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d.rejected = items
}

func (a *account) snapshot() balance {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}
