// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package account knows where every item of a destination is, and what became of it.
//
// A [Parcel] is items that are sent together. Each is in exactly one place, so the received items are the sum of all others at any moment:
// the exporter's metrics promise that.
package account

import "sync"

// state is where a parcel is.
type state uint8

const (
	queued state = iota
	pending
	acked
	dropped
)

// Reason is why items were dropped.
type Reason uint8

// The reasons there are.
const (
	AckTimeout Reason = iota
	Canceled
	QueueFull
	Rejected
	RetriesExhausted
	Shutdown
	StreamLost
	TooLarge
	reasons
)

func (r Reason) String() string {
	return [...]string{
		"ack_timeout", "canceled", "queue_full", "rejected", "retries_exhausted", "shutdown", "stream_lost", "too_large",
	}[r]
}

// Balance is the state of all items at one moment.
type Balance struct {
	Received, Queued, Pending, Acked int64

	Dropped [reasons]int64 // by reason
	// Requests and Bytes are what is pending, in other units.
	Requests, Bytes int64
}

// Parcel is items that are sent together. A new one is queued, and known to the account.
type Parcel struct {
	Items int // for a whole, those that are in no part
	bytes int

	// Guarded by the account's lock, as is Items once there are parts.
	state    state
	settled  bool // and its state is final
	reason   Reason
	rejected int
}

// NewParcel returns a parcel with the given numbers of items and bytes.
func NewParcel(items, bytes int) Parcel { return Parcel{Items: items, bytes: bytes} }

// Account knows where every item of a destination is. Received is the sum of all other numbers at any moment.
type Account struct {
	mu  sync.Mutex
	now Balance
	// rested is called when nothing is pending any more. While set, nothing is sent.
	rested func()
}

// Receive counts items that enter the queue, Refuse takes that back.
func (a *Account) Receive(items int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now.Received += int64(items)
	a.now.Queued += int64(items)
}

// Refuse takes back what was received.
func (a *Account) Refuse(items int) { a.Receive(-items) }

// Overflow counts items for which there was no room here, although another destination accepted them.
func (a *Account) Overflow(items int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now.Queued -= int64(items)
	a.now.Dropped[QueueFull] += int64(items)
}

// Send moves a parcel to what is pending, and reports whether it may be sent.
func (a *Account) Send(p *Parcel) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rested != nil {
		return false
	}
	a.moveTo(p, pending)
	return true
}

// Requeue records that a parcel will be sent again. Settled ones stay settled, here and below.
func (a *Account) Requeue(p *Parcel) { a.move(p, queued) }

// Ack records that the server accepted a parcel. It may have rejected some of its items.
func (a *Account) Ack(p *Parcel) { a.move(p, acked) }

// Reject records how many items of a parcel the server rejects, once it has accepted the others.
func (a *Account) Reject(p *Parcel, items int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p.rejected = items
}

// Drop records that a parcel is lost.
func (a *Account) Drop(p *Parcel, why Reason) {
	p.reason = why
	a.move(p, dropped)
}

// Keep leaves a parcel to the queue, for the next start of the exporter.
func (a *Account) Keep(p *Parcel) {
	a.move(p, queued)
	a.mu.Lock()
	defer a.mu.Unlock()
	p.settled = true
}

// Divide moves the items of a part out of a parcel that is sent in parts. Both are queued.
func (a *Account) Divide(p, part *Parcel) {
	a.mu.Lock()
	defer a.mu.Unlock()
	part.Items = min(part.Items, p.Items)
	p.Items -= part.Items
}

// Settled reports whether a parcel's state is final.
func (a *Account) Settled(p *Parcel) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return p.settled
}

// Rest prevents further sending, and calls f, possibly more than once, when nothing is pending.
func (a *Account) Rest(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rested = f
	a.settle()
}

// Balance returns the current balance.
func (a *Account) Balance() Balance {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

func (a *Account) settle() {
	if a.rested != nil && a.now.Requests == 0 {
		a.rested()
	}
}

func (a *Account) move(p *Parcel, to state) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.moveTo(p, to)
	a.settle()
}

func (a *Account) moveTo(p *Parcel, to state) {
	n := int64(p.Items)
	switch {
	case p.state == to || p.settled:
		return
	case p.state == queued:
		a.now.Queued -= n
	case p.state == pending:
		a.now.Pending -= n
		a.now.Requests--
		a.now.Bytes -= int64(p.bytes)
	}
	p.state, p.settled = to, to == acked || to == dropped
	switch to {
	case queued:
		a.now.Queued += n
	case pending:
		a.now.Pending += n
		a.now.Requests++
		a.now.Bytes += int64(p.bytes)
	case acked:
		rejected := int64(min(p.rejected, p.Items))
		a.now.Acked += n - rejected
		a.now.Dropped[Rejected] += rejected
	case dropped:
		a.now.Dropped[p.reason] += n
	}
}
