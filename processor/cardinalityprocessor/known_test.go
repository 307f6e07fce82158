// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestKnownSeriesWaitForNobody: other goroutines, such as a sweep, may hold the locks, even those of all shards.
func TestKnownSeriesWaitForNobody(t *testing.T) {
	for _, epochs := range []int{0, 1} {
		r := newRig(t, func(c *Config) { threeLimits(c); c.Statistics.Enabled = epochs == 0 })
		md := workload(1000)
		require.Equal(t, 1000, r.consume(md).DataPointCount())
		r.epochs(epochs)
		locks := []sync.Locker{&r.Limiter.Groups.Mu, &r.Overflow.Mu}
		for i := range r.Limiter.Shards() {
			locks = append(locks, &r.Limiter.Series.Shards[i].Mu, &r.Limiter.Values.Shards[i].Mu)
		}
		for i := range r.Overflow.Shards {
			locks = append(locks, &r.Overflow.Shards[i].Mu)
		}
		for _, l := range locks {
			l.Lock()
		}
		passed := make(chan error, 1)
		go func() {
			_, err := r.process(t.Context(), md)
			passed <- err
		}()
		select {
		case err := <-passed:
			require.NoError(t, err)
		case <-time.After(time.Minute):
			t.Error("a known series waits for a lock")
		}
		for _, l := range locks {
			l.Unlock()
		}
	}
}
