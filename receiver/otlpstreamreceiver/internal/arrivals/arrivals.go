// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package arrivals limits the memory of messages that are being received. Until a message is complete, nothing is known
// about it, so it cannot be refused. All of them share a budget. When that is used up, senders wait, those that pause
// are cut off, and one at a time may continue beyond the budget, up to twice the budget, so that there is progress.
package arrivals

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// Own is the number of bytes that each sender may always have incomplete.
	Own = 64 << 10
	// patience is how long a sender may pause while others wait.
	patience = time.Second
	// pause is how long the sender that continues beyond the budget may pause, and the minimum time between two checks
	// for slow senders.
	pause = patience / 10
	// turn is how long a sender may take to complete a message while others wait.
	turn = 10 * time.Second
)

// ErrCut is the error of a sender that was cut off.
var ErrCut = errors.New("memory for messages on their way is short, and this one is slow to come: send it again")

// Arrivals are all senders of a receiver.
type Arrivals struct {
	limit int

	mu       sync.Mutex
	held     int // bytes beyond Own of each sender
	all      map[*Arrival]struct{}
	waiting  int
	favoured *Arrival      // the one that may continue beyond the limit
	looked   time.Time     // time of the last check for slow senders
	changed  chan struct{} // closed when waiting senders may continue
}

// New returns arrivals with a budget in bytes.
func New(limit int) *Arrivals {
	return &Arrivals{limit: limit, all: map[*Arrival]struct{}{}, changed: make(chan struct{})}
}

// Held returns the number of bytes in incomplete messages.
func (a *Arrivals) Held() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for x := range a.all {
		n += x.held
	}
	return n
}

// Arrival is a sender: a connection, or a request counted separately. A nil Arrival counts nothing.
type Arrival struct {
	of   *Arrivals
	cut  func()        // makes its reads fail
	gone chan struct{} // closed when the sender is cut off or leaves

	// Guarded by the lock of the arrivals.
	held  int
	begun time.Time // when it last had at most Own
	last  time.Time // when the last bytes came
	done  time.Time // when it last completed or began a message, plus the time that it has waited since
	came  int       // bytes since then
	waits int       // number of its waiting goroutines
	since time.Time // when the first of them began to wait
	ended int       // number of completed messages
	over  bool
	calls int // open calls, if messages belong to calls
}

// Enter adds a sender. cut cuts it off, and must return quickly.
func (a *Arrivals) Enter(cut func()) *Arrival {
	x := &Arrival{of: a, cut: cut, gone: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all[x] = struct{}{}
	return x
}

// Leave removes a sender with all its incomplete messages.
func (x *Arrival) Leave() {
	a := x.of
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, x)
	x.end()
	x.shrink(x.held, time.Now())
}

// Come counts n more bytes. It waits for room, and fails if the sender is cut off.
func (x *Arrival) Come(n int) error {
	if x == nil {
		return nil
	}
	a := x.of
	a.mu.Lock()
	defer a.mu.Unlock()
	if x.over {
		return ErrCut
	}
	x.last = time.Now()
	if x.held <= Own {
		x.begun, x.done, x.came = x.last, x.last, 0
	}
	x.grow(n)
	x.came += n
	if a.fits(x) {
		return nil
	}
	return x.wait()
}

// Done uncounts n bytes: they are now a complete message, which others count, or were discarded.
func (x *Arrival) Done(n int) {
	if x == nil {
		return
	}
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	x.shrink(min(n, x.held), time.Now())
}

// DoneAll uncounts all bytes.
func (x *Arrival) DoneAll() { x.Done(math.MaxInt) }

// Begin and End count the calls on a connection. Nothing reports what a call leaves unread when it ends, so that is
// counted until the connection has no calls.
func (x *Arrival) Begin() {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	x.calls++
}

// End is described at Begin.
func (x *Arrival) End() {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	if x.calls--; x.calls == 0 {
		x.shrink(x.held, time.Now())
	}
}

// IsOver reports whether a sender was cut off.
func (x *Arrival) IsOver() bool {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	return x.over
}

// The caller of the methods below must hold the lock.

func (x *Arrival) grow(n int) {
	before := max(0, x.held-Own)
	x.held += n
	x.of.held += max(0, x.held-Own) - before
}

func (x *Arrival) shrink(n int, now time.Time) {
	a := x.of
	x.grow(-n)
	if n > 0 {
		x.done, x.came = now, 0
		x.ended++
		if x.waits > 0 {
			x.since = now
		}
	}
	if a.favoured == x && (x.held <= Own || x.over) {
		a.favoured = nil
	}
	if a.waiting == 0 {
		return
	}
	a.favour()
	if a.held <= a.limit {
		a.wake()
	}
}

func (a *Arrivals) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// end tells goroutines waiting for the sender that it is cut off or leaves.
func (x *Arrival) end() {
	if !x.over {
		x.over = true
		close(x.gone)
	}
}

// fits reports whether a sender may continue. The favoured one may not have more incomplete than the limit.
func (a *Arrivals) fits(x *Arrival) bool {
	return a.held <= a.limit || x.held <= Own || a.favoured == x && a.held <= 2*a.limit && x.held <= a.limit
}

// wait waits until the sender may continue. It releases the lock meanwhile.
func (x *Arrival) wait() error {
	a, begun := x.of, time.Now()
	again := time.NewTicker(pause)
	defer again.Stop()
	if x.waits++; x.waits == 1 {
		x.since = begun
	}
	a.waiting++
	a.look(begun)
	for !x.over && !a.fits(x) {
		changed := a.changed
		a.mu.Unlock()
		now := begun
		select {
		case <-changed:
		case <-x.gone:
		case now = <-again.C:
		}
		a.mu.Lock()
		a.look(now)
		if now.Sub(begun) >= patience && x.held > a.limit {
			x.end() // its messages cannot be completed while it waits
		}
	}
	a.waiting--
	now := time.Now()
	x.last = now // nothing could be received meanwhile
	if x.waits--; x.waits == 0 {
		x.done = x.done.Add(now.Sub(x.since))
	}
	if x.over {
		return ErrCut
	}
	return nil
}

// look favours another sender if the favoured one pauses, and cuts off slow ones, at most once in every pause.
func (a *Arrivals) look(now time.Time) {
	if now.Sub(a.looked) < pause {
		return
	}
	a.looked = now
	a.cutSlow(now)
	if x := a.favoured; x != nil && x.waits == 0 && now.Sub(x.last) >= pause {
		a.favoured = nil
	}
	a.favour()
}

// favour lets a waiting sender continue if no one is favoured: the fastest, preferably one that has completed a message
// before.
func (a *Arrivals) favour() {
	if a.favoured != nil {
		return
	}
	now, fastest := time.Now(), 0.
	for x := range a.all {
		if x.waits == 0 || x.over || x.held > a.limit || a.favoured != nil && x.ended == 0 && a.favoured.ended > 0 {
			continue
		}
		if rate := x.rate(now); rate > fastest || x.ended > 0 && a.favoured.ended == 0 {
			a.favoured, fastest = x, rate
		}
	}
	if a.favoured != nil {
		a.wake()
	}
}

// busy returns the time since the last progress, without the time of waiting.
func (x *Arrival) busy(now time.Time) time.Duration {
	if x.waits > 0 {
		now = x.since
	}
	return now.Sub(x.done)
}

// rate returns the bytes received per second in that time.
func (x *Arrival) rate(now time.Time) float64 {
	return float64(x.came) / max(x.busy(now), time.Millisecond).Seconds()
}

// cutSlow cuts off senders that pause although there is room, or that make no progress, the slowest first, until there
// is room. If there is none even beyond the limit, any sender may be cut off, because all wait for each other.
func (a *Arrivals) cutSlow(now time.Time) {
	missing := a.held - a.limit
	var slow []*Arrival
	for x := range a.all {
		switch {
		case x.held <= Own:
		case x.over:
			missing -= x.held - Own // it is leaving
		case x.waits == 0 && now.Sub(x.last) >= patience, x.busy(now) >= turn, a.held > 2*a.limit && now.Sub(x.begun) >= patience:
			slow = append(slow, x)
		}
	}
	slices.SortFunc(slow, func(x, y *Arrival) int { return cmp.Compare(x.rate(now), y.rate(now)) })
	for _, x := range slow {
		if missing <= 0 {
			return
		}
		missing -= x.held - Own
		x.end()
		x.cut()
		if a.favoured == x {
			a.favoured = nil
		}
	}
}
