// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package arrivals bounds the memory of messages that are on their way: begun, and not there yet. Nothing is known of them, so nobody could refuse
// them. Together they have a budget. When it is spent, whoever sends on waits, those from whom nothing comes any more are cut off, and one at a
// time goes on beyond it, up to twice the budget, so that something gets done.
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
	// Own is what each may have on its way whatever others do.
	Own = 64 << 10
	// patience is how long a sender may pause while others wait, and how often these look for someone to cut off.
	patience = time.Second
	// pause is how long one may pause that goes on beyond the budget.
	pause = patience / 10
	// turn is how long a sender may take to get something done while others wait.
	turn = 10 * time.Second
)

// ErrCut is the error of a sender that was cut off.
var ErrCut = errors.New("memory for messages on their way is short, and this one is slow to come: send it again")

// Arrivals are all there are of a receiver.
type Arrivals struct {
	limit int

	mu       sync.Mutex
	held     int // beyond what is each one's own
	all      map[*Arrival]struct{}
	waiting  int
	favoured *Arrival      // who goes on beyond the limit
	looked   time.Time     // when it was last looked for someone to cut off
	changed  chan struct{} // closed when who waits may go on
}

// New returns arrivals that may have so many bytes on their way, and a little for each of them.
func New(limit int) *Arrivals {
	return &Arrivals{limit: limit, all: map[*Arrival]struct{}{}, changed: make(chan struct{})}
}

// Held is how many bytes are on their way.
func (a *Arrivals) Held() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for x := range a.all {
		n += x.held
	}
	return n
}

// Arrival is a sender: a connection, or a request that comes on its own. Nil counts nothing.
type Arrival struct {
	of   *Arrivals
	cut  func()        // has its reading fail
	gone chan struct{} // closed when it is cut off, or leaves

	// The lock of all guards these.
	held  int
	begun time.Time // when it last had no more than its own
	last  time.Time // when some of it came
	done  time.Time // when something last got done, or began, and later by what it has waited since
	came  int       // since then
	waits int       // of its goroutines
	since time.Time // when the first of them began to
	ended int       // how often something got done
	over  bool
	calls int // at a time, where its messages belong to some
}

// Enter notes a sender, and how it is cut off, which must not take long.
func (a *Arrivals) Enter(cut func()) *Arrival {
	x := &Arrival{of: a, cut: cut, gone: make(chan struct{})}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all[x] = struct{}{}
	return x
}

// Leave forgets a sender, and all that it had on its way.
func (x *Arrival) Leave() {
	a := x.of
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, x)
	x.end()
	x.shrink(x.held, time.Now())
}

// Come notes that n bytes more have come. It waits for room, and fails when the sender is cut off meanwhile.
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

// Done notes that n bytes are on their way no more: they are a message, which others account for, or nothing.
func (x *Arrival) Done(n int) {
	if x == nil {
		return
	}
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	x.shrink(min(n, x.held), time.Now())
}

// DoneAll notes that nothing is on its way.
func (x *Arrival) DoneAll() { x.Done(math.MaxInt) }

// Begin and End note a call on a connection. What a call leaves unread when it ends is nothing that anybody tells, so it counts until the connection
// has no calls.
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

// IsOver tells whether a sender was cut off.
func (x *Arrival) IsOver() bool {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	return x.over
}

// What follows is done with the lock held.

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

// end has whoever waits for it know that it is cut off, or leaves.
func (x *Arrival) end() {
	if !x.over {
		x.over = true
		close(x.gone)
	}
}

// fits tells whether a sender may go on. Who has more begun than there is for all is to end some of it first.
func (a *Arrivals) fits(x *Arrival) bool {
	return a.held <= a.limit || x.held <= Own || a.favoured == x && a.held <= 2*a.limit && x.held <= a.limit
}

// wait gives the lock back meanwhile.
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
			x.end() // what it has begun cannot end while it waits
		}
	}
	a.waiting--
	now := time.Now()
	x.last = now // nothing could come meanwhile
	if x.waits--; x.waits == 0 {
		x.done = x.done.Add(now.Sub(x.since))
	}
	if x.over {
		return ErrCut
	}
	return nil
}

// look has another one favoured if nothing comes of who is, and cuts off the slow, not more often than every pause.
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

// favour has one of those that wait go on if none does: of those that have got something done before, if there are any, the one that comes fastest.
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

// busy is for how long it has got nothing done, without what it has waited.
func (x *Arrival) busy(now time.Time) time.Duration {
	if x.waits > 0 {
		now = x.since
	}
	return now.Sub(x.done)
}

// rate is how many bytes have come in a second of that.
func (x *Arrival) rate(now time.Time) float64 {
	return float64(x.came) / max(x.busy(now), time.Millisecond).Seconds()
}

// cutSlow cuts off senders from whom nothing comes though there is room, or who get nothing done, the slowest first, until there is room. Where there is
// none even beyond the limit, it may be anybody: all wait for each other.
func (a *Arrivals) cutSlow(now time.Time) {
	missing := a.held - a.limit
	var slow []*Arrival
	for x := range a.all {
		switch {
		case x.held <= Own:
		case x.over:
			missing -= x.held - Own // it is about to go
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
