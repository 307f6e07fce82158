// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
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

// readAnnounced reads a body of an announced size.
func (a *arrivals) readAnnounced(t *testing.T, s *sender, length int, use time.Duration) error {
	t.Helper()
	s.ResponseWriter = httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/", s)
	r.ContentLength = int64(length)
	body, done, err := a.read(t.Context(), s, r)
	defer done()
	if err == nil {
		assert.Len(t, body, length)
		time.Sleep(use)
	}
	return err
}

// TestSmallBodiesGoOnBesideLargeOnes: senders of large bodies share the memory for those, and get it in turn. Who sends
// small ones does not notice, however many there are.
func TestSmallBodiesGoOnBesideLargeOnes(t *testing.T) {
	for _, large := range []int{20, 300} {
		synctest.Test(t, func(t *testing.T) {
			const size, length, use = 80 * firstRoom, 30 * firstRoom, 20 * time.Millisecond
			a := newArrivals(size, newBudget(0))
			var stop atomic.Bool
			var taken atomic.Int64
			var all, honest sync.WaitGroup
			for i := range large {
				all.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					for !stop.Load() {
						if a.readAnnounced(t, &sender{left: length, atOnce: firstRoom, pause: 2 * time.Millisecond}, length, use) == nil {
							taken.Add(1)
						}
						time.Sleep(50 * time.Millisecond)
					}
				})
			}
			time.Sleep(time.Second)
			const seconds = 4
			for i := range 20 {
				honest.Go(func() {
					time.Sleep(time.Duration(i) * 8 * time.Millisecond)
					for range seconds {
						began := time.Now()
						if err := a.readAnnounced(t, &sender{begin: 8000}, 8000, 0); err != nil {
							t.Error(err)
						}
						assert.LessOrEqual(t, time.Since(began), patience/10)
						time.Sleep(time.Second)
					}
				})
			}
			honest.Wait()
			stop.Store(true)
			all.Wait()
			require.Greater(t, taken.Load(), int64(seconds*10), "and large ones make progress")
			require.Equal(t, a.memory.size, a.memory.free)
			require.Equal(t, a.whole.size, a.whole.free)
		})
	}
}

// TestABodyThatIsAnnouncedToBeTooLargeIsNotRead: its sender need not send all of it first, nor others wait.
func TestABodyThatIsAnnouncedToBeTooLargeIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 5 * firstRoom
		a := newArrivals(size, newBudget(0))
		for length, fits := range map[int]bool{1: true, firstRoom: true, 3 * firstRoom: true, size - 1: true, size: false} {
			began := time.Now()
			s := &sender{left: length, atOnce: firstRoom, pause: time.Millisecond}
			err := a.readAnnounced(t, s, length, 0)
			if fits {
				require.NoError(t, err, length)
			} else {
				require.ErrorIs(t, err, promwrite.ErrTooLarge, length)
				require.Zero(t, time.Since(began))
			}
			require.Equal(t, size, a.memory.free)
			require.Equal(t, size, a.whole.free)
		}
	})
}

// TestWhoStopsInALargeBodyIsCutOff: its memory is all reserved.
func TestWhoStopsInALargeBodyIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 80 * firstRoom
		a := newArrivals(size, newBudget(0))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				s := &sender{begin: firstRoom + 1, left: 30 * firstRoom, atOnce: 1, pause: time.Hour}
				assert.ErrorIs(t, a.readAnnounced(t, s, 30*firstRoom, 0), ErrSlow)
			})
		}
		time.Sleep(2 * time.Second)
		for range 2 {
			all.Go(func() {
				began := time.Now()
				s := &sender{left: 40*firstRoom - 1, atOnce: firstRoom, pause: time.Millisecond}
				if err := a.readAnnounced(t, s, 40*firstRoom-1, time.Second); err != nil {
					t.Error(err)
				}
				assert.Less(t, time.Since(began), 4*patience)
			})
		}
		all.Wait()
		require.Equal(t, a.whole.size, a.whole.free)
	})
}

// TestABodyLargerThanItsPartWaitsItsTurn: it takes memory of decompressed ones, one body at a time.
func TestABodyLargerThanItsPartWaitsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, length, use = 80 * firstRoom, 100 * firstRoom, time.Second
		a := newArrivals(size, newBudget(4*size))
		var all sync.WaitGroup
		var now, most atomic.Int64
		for range 5 {
			all.Go(func() {
				s := &sender{ResponseWriter: httptest.NewRecorder(), left: length, atOnce: firstRoom, pause: time.Millisecond}
				r := httptest.NewRequest(http.MethodPost, "/", s)
				r.ContentLength = length
				body, done, err := a.read(t.Context(), s, r)
				defer done()
				if assert.NoError(t, err) {
					most.Store(max(most.Load(), now.Add(1)))
					assert.Len(t, body, length)
					time.Sleep(use)
					now.Add(-1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, most.Load())
		for _, b := range []*budget{a.memory, a.whole, a.plain, a.turn} {
			require.Equal(t, b.size, b.free)
		}
	})
}

// TestWhoStopsInItsTurnIsCutOff: others wait for it.
func TestWhoStopsInItsTurnIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, length = 80 * firstRoom, 100 * firstRoom
		a := newArrivals(size, newBudget(4*size))
		var all sync.WaitGroup
		all.Go(func() {
			s := &sender{begin: firstRoom + 1, left: length, atOnce: 1, pause: time.Hour}
			assert.ErrorIs(t, a.readAnnounced(t, s, length, 0), ErrSlow)
		})
		time.Sleep(2 * time.Second)
		began := time.Now()
		require.NoError(t, a.readAnnounced(t, &sender{left: length, atOnce: firstRoom, pause: time.Millisecond}, length, 0))
		require.Less(t, time.Since(began), 4*patience)
		all.Wait()
	})
}

// TestALargeBodyDoesNotWaitForItself: it is refused if it does not fit beside what it becomes.
func TestALargeBodyDoesNotWaitForItself(t *testing.T) {
	m := New(16 * 80 * firstRoom)
	const received = 100 * firstRoom
	for n, fits := range map[int]bool{4*80*firstRoom - received - 1: true, 4*80*firstRoom - received: false} {
		h := m.Held()
		err := h.ForPlain(t.Context(), n, received)
		if fits {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, promwrite.ErrTooLarge)
		}
		h.Done()
	}
	h := m.Held()
	require.NoError(t, h.ForPlain(t.Context(), 4*80*firstRoom, 79*firstRoom), "others have memory of their own")
	h.Done()
}

// TestWhoStopsInALargeBodyDoesNotKeepOthersFromBeingDecompressed: it holds memory that these need.
func TestWhoStopsInALargeBodyDoesNotKeepOthersFromBeingDecompressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(16 * 80 * firstRoom)
		var all sync.WaitGroup
		all.Go(func() {
			s := &sender{begin: firstRoom + 1, left: 100 * firstRoom, atOnce: 1, pause: time.Hour}
			assert.ErrorIs(t, m.bodies.readAnnounced(t, s, 100*firstRoom, 0), ErrSlow)
		})
		time.Sleep(2 * time.Second)
		h, began := m.Held(), time.Now()
		require.NoError(t, h.ForPlain(t.Context(), m.plain.size, 1))
		require.Less(t, time.Since(began), 4*patience)
		h.Done()
		all.Wait()
	})
}

// TestWhoWaitsForALargeBodyDoesNotHoldItUp: it gives its memory back only when it has been decompressed, so it is before
// those that wait for that memory, although it comes after them.
func TestWhoWaitsForALargeBodyDoesNotHoldItUp(t *testing.T) {
	const length = 100 * firstRoom
	for name, short := range map[string]int{"free": 0, "not free yet": 50 * firstRoom} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := New(16 * 80 * firstRoom)
				require.True(t, m.plain.try(short))
				var all sync.WaitGroup
				var failed error
				all.Go(func() {
					s := &sender{ResponseWriter: httptest.NewRecorder(), left: length, atOnce: firstRoom, pause: time.Millisecond}
					req := httptest.NewRequest(http.MethodPost, "/", s)
					req.ContentLength = length
					body, done, err := m.Read(t.Context(), s, req)
					defer done()
					began, h := time.Now(), m.Held()
					defer h.Done()
					failed = errors.Join(err, h.ForPlain(t.Context(), 200*firstRoom, len(body)))
					assert.Less(t, time.Since(began), 2*patience)
				})
				all.Go(func() { time.Sleep(patience); m.plain.give(short) })
				time.Sleep(50 * time.Millisecond) // it has come half
				h := m.Held()
				err := h.ForPlain(t.Context(), 250*firstRoom, 1)
				h.Done()
				all.Wait()
				require.NoError(t, errors.Join(failed, err))
				require.Equal(t, m.plain.size, m.plain.free)
			})
		})
	}
}

// TestWhoSendsInItsTurnMayFinish: if those that wait cut it off, and it them when it comes again, none would get through.
func TestWhoSendsInItsTurnMayFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, length = 80 * firstRoom, 100 * firstRoom
		a := newArrivals(size, newBudget(4*size))
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				assert.NoError(t, a.readAnnounced(t, &sender{left: length, atOnce: firstRoom, pause: 2 * patience / 100}, length, 0))
			})
		}
		all.Wait()
	})
}

// TestATurnEnds: who sends just enough not to stop does not keep the others from theirs.
func TestATurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, length = 80 * firstRoom, 100 * firstRoom
		a := newArrivals(size, newBudget(4*size))
		var all sync.WaitGroup
		all.Go(func() {
			s := &sender{begin: firstRoom + 1, left: length, atOnce: 2 * leastRoom, pause: patience / 2}
			assert.ErrorIs(t, a.readAnnounced(t, s, length, 0), ErrSlow)
		})
		time.Sleep(patience)
		err := a.readAnnounced(t, &sender{left: length, atOnce: firstRoom, pause: time.Millisecond}, length, 0)
		all.Wait()
		require.NoError(t, err)
	})
}
