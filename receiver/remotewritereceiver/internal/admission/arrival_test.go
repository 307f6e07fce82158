// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// sender sends a body of zeros, some bytes at a time.
type sender struct {
	http.ResponseWriter

	begin        int // bytes that come at once, before the first pause
	left, atOnce int
	pause        time.Duration

	mu       sync.Mutex
	deadline time.Time
	stop     chan struct{} // closed when a deadline is set
}

func (s *sender) stopped() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop == nil {
		s.stop = make(chan struct{})
	}
	return s.stop
}

func (s *sender) Read(p []byte) (int, error) {
	if n := min(len(p), s.begin); n > 0 {
		s.begin -= n
		return n, nil
	}
	select {
	case <-s.stopped():
	case <-time.After(s.pause):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.deadline.IsZero() && s.deadline.Before(time.Now()) {
		return 0, context.DeadlineExceeded
	}
	if s.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), s.atOnce, s.left)
	s.left -= n
	return n, nil
}

func (*sender) Close() error { return nil }

func (s *sender) SetReadDeadline(at time.Time) error {
	s.stopped()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deadline.IsZero() {
		close(s.stop)
	}
	s.deadline = at
	return nil
}

// TestBodiesThatAllNeedMoreHoldNothingUp: each of several bodies has a part of the memory and waits for the same amount
// again. One of them has to be cut off, immediately; others are accepted.
func TestBodiesThatAllNeedMoreHoldNothingUp(t *testing.T) {
	for _, pause := range []time.Duration{10 * time.Millisecond, 200 * time.Millisecond} { // all wait before any may be cut off, or later
		synctest.Test(t, func(t *testing.T) {
			const senders, size = 5, 16 * firstRoom
			a := newArrivals(senders*size+size, newBudget(0)) // each has a part of it, and none has room for the next
			var taken atomic.Int64
			var all sync.WaitGroup
			began := time.Now()
			for i := range senders {
				all.Go(func() {
					s := &sender{ResponseWriter: httptest.NewRecorder(), left: size + 1, atOnce: firstRoom, pause: pause + time.Duration(i)*time.Millisecond}
					body, done, err := a.read(t.Context(), s, httptest.NewRequest(http.MethodPost, "/", s))
					defer done()
					if err != nil {
						if !errors.Is(err, ErrSlow) {
							t.Error(err)
						}
						return
					}
					assert.Len(t, body, size+1)
					taken.Add(1)
				})
			}
			all.Wait()
			require.Less(t, time.Since(began), maxWait)
			require.EqualValues(t, senders-1, taken.Load(), "one made room")
			require.Equal(t, a.memory.size, a.memory.free)
		})
	}
}

// TestWhoSendsNothingHoldsNobodyUp: memory is full of bodies that have begun and do not continue. New bodies get room
// immediately, small or large, one after another and together: as many as necessary are cut off.
func TestWhoSendsNothingHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const memory = 200 * firstRoom
		a := newArrivals(memory, newBudget(0))
		read := func(s *sender) error {
			s.ResponseWriter = httptest.NewRecorder()
			_, done, err := a.read(t.Context(), s, httptest.NewRequest(http.MethodPost, "/", s))
			done()
			return err
		}
		var all, stalled sync.WaitGroup
		var cut atomic.Int64
		for range 200 {
			stalled.Go(func() {
				if read(&sender{begin: leastRoom, left: 2, atOnce: 1, pause: 20 * time.Second}) != nil {
					cut.Add(1)
				}
			})
		}
		time.Sleep(patience)
		began := time.Now()
		for _, size := range []int{firstRoom - 1, 1, firstRoom - 1, 10 * firstRoom, 1, 20 * firstRoom, 1} {
			require.NoError(t, read(&sender{left: size, atOnce: firstRoom}))
		}
		for i := range 50 {
			all.Go(func() { assert.NoError(t, read(&sender{left: 1 + i*1000, atOnce: firstRoom})) })
		}
		all.Wait()
		assert.Zero(t, time.Since(began))
		stalled.Wait()
		assert.Positive(t, cut.Load())
		assert.Less(t, cut.Load(), int64(200), "no more than it takes")
	})
}

// TestWhoHadToWaitDoesNotStall: a body that made no progress for lack of memory does not count as stalled.
func TestWhoHadToWaitDoesNotStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArrivals(3*firstRoom, newBudget(0))
		others := func(n int) { require.NoError(t, a.memory.take(t.Context(), n, nil)) } // not senders
		read := func(size int) {
			s := &sender{ResponseWriter: httptest.NewRecorder(), left: size, atOnce: firstRoom, pause: 100 * time.Millisecond}
			_, done, err := a.read(t.Context(), s, httptest.NewRequest(http.MethodPost, "/", s))
			done()
			assert.NoError(t, err)
		}
		var all sync.WaitGroup
		others(firstRoom)
		all.Go(func() { read(firstRoom + 1) })
		time.Sleep(1650 * time.Millisecond)
		a.memory.give(firstRoom) // for which it has waited
		synctest.Wait()
		others(firstRoom)
		all.Go(func() { read(1) })
		all.Wait()
	})
}

// TestWhoSendsIsNotCutOffAtOnce: memory that is short for a moment, after there was enough for long, costs no sender its
// request, however slow.
func TestWhoSendsIsNotCutOffAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArrivals(16*firstRoom, newBudget(0))
		var all sync.WaitGroup
		read := func(size int, pause time.Duration) {
			s := &sender{ResponseWriter: httptest.NewRecorder(), left: size, atOnce: firstRoom / 2, pause: pause}
			_, done, err := a.read(t.Context(), s, httptest.NewRequest(http.MethodPost, "/", s))
			done()
			assert.NoError(t, err)
		}
		all.Go(func() { read(4*firstRoom, 500*time.Millisecond) })
		time.Sleep(2*patience + patience/10)
		taken, _ := a.memory.usage()
		rest := a.memory.size - taken
		require.NoError(t, a.memory.take(t.Context(), rest, nil)) // for others, for less than a second
		all.Go(func() { read(2*firstRoom, 0) })
		time.Sleep(patience / 2)
		a.memory.give(rest)
		all.Wait()
		require.Equal(t, a.memory.size, a.memory.free)
	})
}

// TestABodyThatCanNeverFitIsTooLarge: it grows into memory twice as large, and keeps its present memory until then. A
// body for which both never fit is refused for good, because a retry would not help. All of the memory is used.
func TestABodyThatCanNeverFitIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const memory = 5 * firstRoom // twice firstRoom, and what is left then
		a := newArrivals(memory, newBudget(0))
		began := time.Now()
		for size, fits := range map[int]bool{firstRoom: true, 3*firstRoom - 1: true, 3*firstRoom + 1: false, memory: false} {
			s := &sender{ResponseWriter: httptest.NewRecorder(), left: size, atOnce: firstRoom}
			body, done, err := a.read(t.Context(), s, httptest.NewRequest(http.MethodPost, "/", s))
			if fits {
				require.NoError(t, err, size)
				require.Len(t, body, size)
			} else {
				require.ErrorIs(t, err, promwrite.ErrTooLarge, size)
			}
			done()
			require.Equal(t, memory, a.memory.free)
		}
		require.Zero(t, time.Since(began))
	})
}

// TestWhoSendsNextToNothingTakesNothing: many clients send a byte a second. That does not delay others at all. If they
// begin with as much as others send, they pay for the place that they take, and others get theirs in turn.
func TestWhoSendsNextToNothingTakesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		begin int
		wait  time.Duration
	}{
		"a byte":  {0, 0},
		"a start": {firstRoom - 1000, maxWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newArrivals(48*firstRoom, newBudget(0))
				var stop atomic.Bool
				var all, honest sync.WaitGroup
				read := func(s *sender) error {
					s.ResponseWriter = httptest.NewRecorder()
					_, done, err := a.read(t.Context(), s, httptest.NewRequest(http.MethodPost, "/", s))
					done()
					return err
				}
				for i := range 150 {
					all.Go(func() {
						time.Sleep(time.Duration(i) * 4 * time.Millisecond)
						for !stop.Load() {
							_ = read(&sender{begin: c.begin, left: 60, atOnce: 1, pause: 900 * time.Millisecond})
						}
					})
				}
				time.Sleep(3 * time.Second)
				for i := range 60 {
					honest.Go(func() {
						time.Sleep(time.Duration(i) * 8 * time.Millisecond)
						for range 5 {
							began := time.Now()
							if err := read(&sender{begin: 8000}); err != nil {
								t.Error(err)
							}
							assert.LessOrEqual(t, time.Since(began), c.wait)
							time.Sleep(time.Second)
						}
					})
				}
				honest.Wait()
				stop.Store(true)
				all.Wait()
				require.Equal(t, a.memory.size, a.memory.free)
			})
		})
	}
}
