// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// places returns how many are free.
func (h *learners) places() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.free
}

func TestLearnersShareTheirRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLearners(1, 10*heldLineBytes)
		first := &learner{home: h}
		first.hold(10)
		require.True(t, first.wait(t.Context(), 0), "there is room")
		first.hold(11)
		var has []*learner
		for range learnersFactor {
			l := &learner{home: h}
			require.True(t, l.wait(t.Context(), 0), "a few go on without")
			require.True(t, l.wait(t.Context(), 0), "for their turn")
			has = append(has, l)
		}
		began := time.Now()
		late := &learner{home: h}
		require.False(t, late.wait(t.Context(), learningTurn/2))
		require.Equal(t, learningTurn/2, time.Since(began))
		late.end()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.False(t, late.wait(ctx, time.Hour), "nobody waits for it any more")
		late.end()

		var order []int
		for i := range 3 {
			go func() {
				l := &learner{home: h}
				if l.wait(t.Context(), time.Hour) {
					order = append(order, i)
				}
				l.hold(1)
				time.Sleep(time.Millisecond)
				l.end()
				l.end()
			}()
			synctest.Wait()
		}
		require.Empty(t, order)
		has[0].end()
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, order, "the first to wait is the first to go on")
		require.Equal(t, 1, h.places())
		time.Sleep(learningTurn)
		synctest.Wait()
		require.Equal(t, learnersFactor, h.places(), "a place is kept for a turn, whatever its page does")

		for i := range 2 * learnersFactor { // free places go to the first
			require.Equal(t, i < learnersFactor, (&learner{home: h}).wait(t.Context(), time.Millisecond))
		}
		first.end()
		(&learner{}).end()
		time.Sleep(learningTurn)
		synctest.Wait()
		require.Equal(t, learnersFactor, h.places())
		h.mu.Lock()
		defer h.mu.Unlock()
		require.Zero(t, h.held)
		require.Empty(t, h.waiting)
	})
}
