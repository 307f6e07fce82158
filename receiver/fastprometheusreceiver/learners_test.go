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

func TestLearnersAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLearners(1)
		var has []*learner
		for range learnersFactor {
			has = append(has, h.take(t.Context(), 0))
			require.NotNil(t, has[len(has)-1])
		}
		began := time.Now()
		require.Nil(t, h.take(t.Context(), learningTurn/2), "there is no place")
		require.Equal(t, learningTurn/2, time.Since(began))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Nil(t, h.take(ctx, time.Hour), "nobody waits for it any more")

		var order []int
		for i := range 3 {
			go func() {
				l := h.take(t.Context(), time.Hour)
				order = append(order, i)
				time.Sleep(time.Millisecond)
				l.leave()
			}()
			synctest.Wait()
		}
		require.Empty(t, order)
		has[0].leave()
		has[0].leave()
		time.Sleep(10 * time.Millisecond)
		require.Equal(t, []int{0, 1, 2}, order, "the first to wait is the first to have one")
		require.Equal(t, 1, h.free)
		time.Sleep(learningTurn)
		require.Equal(t, learnersFactor, h.free, "a place is kept for a turn, whatever its page does")
		has[1].leave()
		require.Equal(t, learnersFactor, h.free)
		(*learner)(nil).leave()
	})
}
