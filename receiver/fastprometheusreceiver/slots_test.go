// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// crowd keeps targets reading, each for a long time, in pieces of the given duration. It returns when they are told to
// stop.
func crowd(h *slots, readers int, piece time.Duration, pieces int) (reading *atomic.Int64, stop func()) {
	reading = new(atomic.Int64)
	var stopped atomic.Bool
	var running sync.WaitGroup
	for range readers {
		running.Go(func() {
			for !stopped.Load() {
				s := h.take(slow)
				reading.Add(1)
				for range pieces {
					time.Sleep(piece)
					s.pause()
				}
				reading.Add(-1)
				s.release()
			}
		})
	}
	return reading, func() {
		stopped.Store(true)
		running.Wait()
	}
}

// settled asserts that all slots were returned.
func (h *slots) settled(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	assert.Equal(t, h.keep, h.free)
	assert.Zero(t, h.away)
	assert.LessOrEqual(t, len(h.idle), h.keep)
	for _, q := range h.queues {
		assert.Empty(t, q)
	}
	assert.Zero(t, h.waiting.held.Load())
}

// However many pages take long to parse, in small pieces or in one, a quick page is parsed soon. The number of pages
// that are parsed at a time is limited.
func TestQuickPagesDoNotWaitForSlowOnes(t *testing.T) {
	const processors = 2
	for name, test := range map[string]struct {
		readers int
		piece   time.Duration
		pieces  int
		most    time.Duration // for a quick page to wait
	}{
		"as many as processors, in pieces":    {processors, time.Millisecond, 10_000, 2 * turn},
		"as many as processors, in one piece": {processors, 10 * time.Second, 1, 2 * turn},
		"some, in one piece":                  {4 * processors, time.Second, 1, 2 * turn},
		"very many, in pieces":                {100, time.Millisecond, 10_000, 2 * turn},
		"very many, in long pieces":           {100, 5 * turn, 100, 2 * turn},
		"very many, in one piece":             {100, time.Second, 1, 2 * turn},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newSlots(processors, &backlog{most: 1})
				reading, stop := crowd(h, test.readers, test.piece, test.pieces)
				time.Sleep(time.Second)
				var longest time.Duration
				for range 200 {
					began := time.Now()
					s := h.take(quick)
					longest = max(longest, time.Since(began))
					assert.LessOrEqual(t, reading.Load(), int64(processors*(awayFactor+1)))
					time.Sleep(time.Millisecond)
					s.release()
					time.Sleep(50 * time.Millisecond)
				}
				t.Log("the longest wait:", longest)
				assert.LessOrEqual(t, longest, test.most)
				stop()
				h.settled(t)
			})
		})
	}
}

// Quick pages do not block slow ones.
func TestSlowPagesAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSlots(1, &backlog{most: 1})
		var stopped atomic.Bool
		var running sync.WaitGroup
		for range 20 { // more than there is time for
			running.Go(func() {
				for !stopped.Load() {
					s := h.take(quick)
					time.Sleep(time.Millisecond)
					s.release()
				}
			})
		}
		done := make(chan struct{})
		go func() {
			s := h.take(slow)
			for range 1000 {
				time.Sleep(time.Millisecond)
				s.pause()
			}
			s.release()
			close(done)
		}()
		began := time.Now()
		<-done
		assert.Less(t, time.Since(began), 10*time.Second)
		stopped.Store(true)
		running.Wait()
		h.settled(t)
	})
}

// A slow pipeline holds the metrics of as many scrapes as there is memory for, while others get the slots.
func TestPlacesWhileThePipelineIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const processors, room, scrapes = 2, 100, 300
		h := newSlots(processors, &backlog{most: room})
		var inside, most atomic.Int64
		var running sync.WaitGroup
		for range scrapes {
			running.Go(func() {
				h.take(quick).lend(1, func() {
					atMost(&most, inside.Add(1))
					time.Sleep(time.Minute)
					inside.Add(-1)
				})
			})
		}
		time.Sleep(30 * time.Second)
		assert.Equal(t, int64(room+processors), inside.Load())
		assert.True(t, h.waiting.isFull(true))
		running.Wait()
		assert.Equal(t, int64(room+processors), most.Load())
		h.settled(t)
	})
}

// Skipped scrapes have priority when there is room again.
func TestBacklog(t *testing.T) {
	b := backlog{most: 100}
	assert.True(t, b.enter(1000), "there is room for one, whatever it is")
	assert.True(t, b.isFull(true))
	assert.False(t, b.enter(1))
	b.leave(1000)
	assert.True(t, b.enter(80))
	assert.True(t, b.isFull(false))
	assert.False(t, b.isFull(true))
	assert.True(t, b.enter(20))
	assert.True(t, b.isFull(true))
	assert.False(t, b.enter(1))
}
