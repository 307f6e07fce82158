// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// leastRoom is the initial memory of a body, whatever its announced size: so little that a client which sends next to
	// nothing, on many connections, takes nothing from others.
	leastRoom = 1 << 10
	// firstRoom is its memory when that is full; it doubles as the body arrives.
	firstRoom = 32 << 10
	// patience is how long a body may take before its sender can be cut off for being slow.
	patience = time.Second
	// turnTime is how long a body in its turn may take before it can be cut off for being slow: there is always one that
	// is the slowest. It is half of what the next one waits.
	turnTime = maxWait / 2
)

// ErrSlow matches the error for a sender that was cut off.
var ErrSlow = errors.New("memory for bodies is short and no sender is slower, send again later")

// arrivals reads bodies into shared memory. When that is short, the slowest senders are cut off: a client that opens
// many connections and sends nothing must not hold what others need.
//
// A body whose size is announced takes all of its memory at once, after the first part has come: if several had a part
// each, all would wait for more. That memory is apart, so that small bodies wait for small ones only. A body that is larger than all
// of it waits its turn, and takes memory of decompressed bodies.
type arrivals struct {
	memory *budget // of the first part of each body, and of bodies of unknown size
	whole  *budget // of the rest
	plain  *budget // of decompressed bodies, of which a body that is too large for whole takes what it needs
	turn   *budget // of one: such bodies come one at a time, so that no two wait for what the other holds

	mu     sync.Mutex
	bodies map[*arrival]struct{}
	queued int // bodies that wait for whole
}

// arrival is a body being received.
type arrival struct {
	since time.Time
	stop  func() // makes reading fail

	// Guarded by arrivals.mu.
	read    int
	counted int       // of these, what was there at last
	last    time.Time // when data last came that is worth mentioning: leastRoom
	held    int       // of memory
	whole   int       // of whole
	turn    int       // of turn
	plain   int       // of plain
	granted time.Time // when it last got of whole, turn or plain
	stopped time.Time // when it began to wait for data of others; zero unless it does
	leave   func()    // makes the wait for memory fail; nil unless it waits
}

// newArrivals divides twice size bytes.
func newArrivals(size int, plain *budget) *arrivals {
	return &arrivals{memory: newBudget(size), whole: newBudget(size), plain: plain, turn: newBudget(1), bodies: map[*arrival]struct{}{}}
}

// most is the limit of a body: decompressed, it needs as much again.
func (a *arrivals) most() int { return max(a.whole.size, a.plain.size/2) }

// borrows returns how much a body of this length takes of the memory of decompressed ones.
func (a *arrivals) borrows(length int) int {
	if length < a.whole.size {
		return 0
	}
	return length + 1 // which tells that it has ended
}

// read receives the body of req. The memory counts until done is called, with or without an error; from then on it
// belongs to another body.
func (a *arrivals) read(ctx context.Context, w http.ResponseWriter, req *http.Request) (body []byte, done func(), err error) {
	begun := time.Now()
	now := &arrival{since: begun, last: begun, stop: func() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // if it cannot be stopped, the server has no timeouts
	}}
	a.mu.Lock()
	a.bodies[now] = struct{}{}
	a.mu.Unlock()
	body, err = a.fill(ctx, now, req.Body, req.ContentLength)
	a.mu.Lock()
	delete(a.bodies, now)
	stopped := !now.stopped.IsZero()
	a.mu.Unlock()
	if err != nil && stopped {
		err = ErrSlow
	}
	if err != nil {
		err = fmt.Errorf("cannot read the body after %d bytes: %w", len(body), err)
	}
	return body, func() {
		putRoom(body)
		a.memory.give(now.held)
		a.whole.give(now.whole)
		a.plain.give(now.plain)
		a.turn.give(now.turn)
	}, err
}

// fill reads a body of the given length, which is negative if it is not known.
func (a *arrivals) fill(ctx context.Context, now *arrival, from io.Reader, length int64) (body []byte, err error) {
	if length >= int64(a.most()) {
		return nil, tooMuch(int(length), a.most()-1)
	}
	for {
		if len(body) == cap(body) && len(body) >= firstRoom && length >= firstRoom && now.whole+now.plain == 0 {
			if body, err = a.enlarge(ctx, now, body, int(length)); err != nil {
				return body, err
			}
		}
		if len(body) == cap(body) {
			room := min(max(firstRoom, 2*cap(body)), a.memory.size-cap(body)) // all memory except that of the body itself
			if body == nil {
				room = leastRoom
			}
			if room <= cap(body) {
				return body, tooMuch(3*cap(body), a.memory.size)
			}
			if err = a.hold(ctx, now, room); err != nil {
				return body, err
			}
			larger := append(getRoom(room), body...)
			putRoom(body)
			body = larger
			a.giveBack(now, room)
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		a.mu.Lock()
		if now.read = len(body); now.read-now.counted >= leastRoom {
			now.counted, now.last = now.read, time.Now()
		}
		a.mu.Unlock()
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return body, err
		}
	}
}

// enlarge moves the first part of a body into memory for all of it.
func (a *arrivals) enlarge(ctx context.Context, now *arrival, first []byte, length int) ([]byte, error) {
	room := a.borrows(length)
	if room == 0 {
		room = wholeRoom(length, a.whole.size)
		if err := a.takeInTurn(ctx, now, a.whole, &now.whole, room); err != nil {
			return first, err
		}
	} else {
		if err := a.takeInTurn(ctx, now, a.turn, &now.turn, 1); err != nil {
			return first, err
		}
		if err := a.takeInTurn(ctx, now, a.plain, &now.plain, room); err != nil {
			return first, err
		}
	}
	body := append(getRoom(room), first...)
	putRoom(first)
	a.giveBack(now, 0)
	return body, nil
}

// takeInTurn takes n of a budget, and records it in held.
func (a *arrivals) takeInTurn(ctx context.Context, now *arrival, of *budget, held *int, n int) error {
	if !of.try(n) {
		if !a.queue() {
			return busy(n)
		}
		err := a.wait(ctx, now, of, n)
		a.leaveQueue()
		if err != nil {
			return err
		}
	}
	a.mu.Lock()
	*held, now.granted = n, time.Now()
	a.mu.Unlock()
	return nil
}

// queue lets a body wait, unless the first parts of those that do take half of the memory for first parts.
func (a *arrivals) queue() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if (a.queued+1)*firstRoom > a.memory.size/2 {
		return false
	}
	a.queued++
	return true
}

func (a *arrivals) leaveQueue() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queued--
}

// hold takes n more bytes, if needed from the slowest senders.
func (a *arrivals) hold(ctx context.Context, now *arrival, n int) error {
	if err := a.wait(ctx, now, a.memory, n); err != nil {
		return err
	}
	a.mu.Lock()
	now.held += n
	a.mu.Unlock()
	return nil
}

func (a *arrivals) wait(ctx context.Context, now *arrival, of *budget, n int) error {
	if of.try(n) { // fast path
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.waits(now, cancel)
	defer a.waits(now, nil)
	return of.take(ctx, n, func(missing, all int, isStuck bool) { a.makeRoom(now, of, missing, all, isStuck) })
}

// waits records how to end a body's wait for memory, nil if it does not wait.
func (a *arrivals) waits(now *arrival, leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch now.leave = leave; {
	case leave == nil:
		now.last = time.Now() // nothing could come until then
	case !now.stopped.IsZero(): // since it last read
		leave()
	}
}

// giveBack reduces the memory of a body to n bytes.
func (a *arrivals) giveBack(now *arrival, n int) {
	a.mu.Lock()
	rest := now.held - n
	now.held = n
	a.mu.Unlock()
	a.memory.give(rest)
}

// makeRoom cuts off senders other than that of one body, which may be nil, until enough memory is free: those that send next to nothing, until all have what is
// missing for all who wait; and if isStuck, the ones that have sent the least per second, until this one has what is
// missing for it. Bodies that wait for memory themselves are cut off last, and those that hold next to none after all others.
func (a *arrivals) makeRoom(of *arrival, memory *budget, missing, all int, isStuck bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	held := func(x *arrival) int {
		switch memory {
		case a.whole:
			return x.whole
		case a.turn:
			return x.turn
		case a.plain:
			return x.plain
		}
		return x.held
	}
	var slow []*arrival
	for x := range a.bodies {
		switch {
		case x == of:
		case !x.stopped.IsZero():
			if time.Since(x.stopped) < patience { // else it cannot be stopped
				missing -= held(x)
				all -= held(x)
			}
		case memory == a.turn && x.turn > 0 && !x.stalls() && time.Since(x.granted) < turnTime:
		case held(x) > 0 && (x.stalls() || isStuck && time.Since(x.since) >= patience):
			slow = append(slow, x)
		}
	}
	slices.SortFunc(slow, func(x, y *arrival) int { return cmp.Or(x.rank()-y.rank(), cmp.Compare(x.rate(), y.rate())) })
	for _, x := range slow {
		if missing <= 0 && (all <= 0 || !x.stalls()) {
			continue
		}
		x.stopped = time.Now()
		x.stop()
		if x.leave != nil {
			x.leave()
		}
		missing -= held(x)
		all -= held(x)
	}
}

// stalls reports whether next to no data has come for a while, although there was room for it.
func (x *arrival) stalls() bool { return x.leave == nil && time.Since(x.last) >= patience }

// rank orders bodies by how little they can do about being slow.
func (x *arrival) rank() int {
	switch {
	case x.leave == nil:
		return 0
	case x.held > leastRoom:
		return 1
	}
	return 2
}

// rate is the bytes received per second.
func (x *arrival) rate() float64 { return float64(x.read) / time.Since(x.since).Seconds() }
