// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/amount"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
)

// A flush that retires very many members at once blocks others only for a small part of its time: both lookups of
// outputs and additions. A machine may pause for longer than a lock is held, so the best of several attempts counts.
func TestAFlushThatRetiresManyHoldsNoLockForLong(t *testing.T) {
	for name, of := range map[string]struct {
		keep func(change func(*Config)) func(*Config)
		part time.Duration
	}{
		"in memory":      {func(change func(*Config)) func(*Config) { return change }, 8},
		"with a storage": {withStorage, 4}, // a shard is locked while its members are written
	} {
		t.Run(name, func(t *testing.T) {
			const members, attempts = 200_000, 6
			var longest, took time.Duration
			for range attempts {
				if longest, took = retire(t, members, of.keep); longest < took/of.part {
					return
				}
			}
			require.Less(t, longest, took/of.part, "the longest that a lock was waited for, of all that the flush took")
		})
	}
}

func retire(t *testing.T, members int, keep func(func(*Config)) func(*Config)) (longest, took time.Duration) {
	r := newRig(t, keep(func(c *Config) {
		overflowing(1)(c)
		c.Memory.OverflowStateMiB, c.Statistics.Enabled = 256, false
	}))
	if r.cfg.Storage != nil {
		require.NoError(t, r.begin(newMemory()))
	}
	r.send(point{name: "other"})
	md := pmetric.NewMetrics()
	s := aSeries(0)
	s.kind = cumulative
	appendPoint(md, s)
	m := onlyMetricOf(md)
	for i := 1; i < members; i++ {
		amount.AppendPointOf(m, m)
		amount.AttributesAt(m, i).PutInt("member", int64(i))
	}
	for i := range members {
		setPoint(m, i, r.clock, r.clock.Add(time.Second), 1)
	}
	r.consume(md)
	_, n, _ := r.Overflow.Sizes()
	require.Equal(t, members, n)
	r.epochs(moment.IdleEpochs + 3)

	over := make(chan struct{})
	var probe sync.WaitGroup
	waited := make([]time.Duration, len(r.Overflow.Shards)+1)
	look := func(i int, lock sync.Locker) {
		began := time.Now()
		lock.Lock()
		waited[i] = max(waited[i], time.Since(began))
		lock.Unlock()
	}
	probe.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			for i := range r.Overflow.Shards {
				look(i, &r.Overflow.Shards[i].Mu)
			}
			look(len(waited)-1, &r.Overflow.Mu)
		}
	})
	began := time.Now()
	r.flush(t.Context())
	took = time.Since(began)
	close(over)
	probe.Wait()
	_, n, _ = r.Overflow.Sizes()
	require.Zero(t, n)
	for _, d := range waited {
		longest = max(longest, d)
	}
	return longest, took
}
