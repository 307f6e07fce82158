// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

func tenantBlock(number int, tenant string) block.Block {
	b := blockOf(number, 0)
	b.Tenant = tenant
	return b
}

func shared(c *Config) { c.Tenants = 1000 }

func TestTenantsOfAShardHaveLanesOfTheirOwn(t *testing.T) {
	q, _ := open(t, 1, 100, shared)
	push(t, q, 0, tenantBlock(1, "a"), tenantBlock(2, "b"), tenantBlock(3, "a"), tenantBlock(4, "b"))
	a := next(t, q, 0, 1)
	b := next(t, q, 0, 2)
	idle(t, q)
	b.Done(nil)
	next(t, q, 0, 4).Done(nil)
	idle(t, q)
	a.Done(nil)
	next(t, q, 0, 3).Done(nil)
	require.Empty(t, q.destinations[0].tenantStates.shares)
}

func TestPausedTenantIsProbedByOneLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := open(t, 1, 100, shared)
		other := tenantBlock(2, "a")
		other.Shard = 1
		push(t, q, 0, tenantBlock(1, "a"), other, tenantBlock(3, "b"))
		next(t, q, 0, 1).Later(0, nil, time.Minute)
		next(t, q, 0, 3).Done(nil)
		idle(t, q)
		began := time.Now()
		probe := next(t, q, 0, 1) // waits
		require.Equal(t, time.Minute, time.Since(began))
		idle(t, q)
		probe.Later(0, nil, time.Hour)
		idle(t, q)
		probe = next(t, q, 0, 1)
		require.Equal(t, time.Minute+time.Hour, time.Since(began))
		probe.Done(nil)
		next(t, q, 0, 2).Done(nil)
	})
}

// TestBlocksOfARefusedTenantDoNotWaitForSenders: so the destination does not count as slow.
func TestBlocksOfARefusedTenantDoNotWaitForSenders(t *testing.T) {
	q, _ := open(t, 1, 100, shared)
	push(t, q, 0, tenantBlock(1, "a"), tenantBlock(2, "a"), tenantBlock(3, "b"), tenantBlock(4, "b"))
	require.Equal(t, 4, q.Stats(0).Waiting)
	a := next(t, q, 0, 1)
	require.Equal(t, 3, q.Stats(0).Waiting)
	a.Later(0, nil, time.Hour)
	require.Equal(t, 2, q.Stats(0).Waiting)
	next(t, q, 0, 3).Done(nil)
	require.Equal(t, 1, q.Stats(0).Waiting)
	require.Equal(t, 3, q.Stats(0).Blocks)
}

// TestABlockThatIsTooOldIsNoAnswer: if the queue drops it, the pause of its tenant does not end, and one lane continues
// to probe.
func TestABlockThatIsTooOldIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, dropped := open(t, 1, 100, func(c *Config) { c.Tenants, c.Senders, c.MaxAge = 10, 4, time.Minute })
		push(t, q, 0, tenantBlock(1, "a"))
		next(t, q, 0, 1).Later(0, nil, 2*time.Minute)
		time.Sleep(2 * time.Minute)
		for n := 2; n < 6; n++ {
			b := tenantBlock(n, "a")
			b.Shard = n % 2
			push(t, q, 0, b)
		}
		probe := next(t, q, 0, 2)
		require.Equal(t, drops{ReasonAge: 1}, dropped)
		idle(t, q)
		probe.Done(nil)
		next(t, q, 0, 3).Done(nil)
		next(t, q, 0, 4).Done(nil)
		next(t, q, 0, 5).Done(nil)
	})
}

func TestWhatIsDoneBeforeAPauseIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := open(t, 1, 100, shared)
		push(t, q, 0, tenantBlock(1, "a"), tenantBlock(2, "a"), tenantBlock(3, "a"))
		l, err := q.Next(t.Context(), 0, anyNumber)
		require.NoError(t, err)
		require.Len(t, l.Blocks, 3)
		l.Later(2, nil, time.Minute)
		require.Equal(t, 1, q.Stats(0).Blocks)
		require.Zero(t, q.Stats(0).Leased)
		next(t, q, 0, 3).Done(nil)
	})
}

// TestWhatIsDoneBeforeTheEndIsDone: delivered blocks are not sent again by the next process, and not reported as lost.
func TestWhatIsDoneBeforeTheEndIsDone(t *testing.T) {
	m := newMedium()
	for name, change := range map[string]func(*Config){"memory": nil, "disk": func(c *Config) { c.Storage = on(m) }} {
		t.Run(name, func(t *testing.T) {
			q, dropped := open(t, 1, 100, change)
			push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 0))
			l, err := q.Next(t.Context(), 0, anyNumber)
			require.NoError(t, err)
			require.Len(t, l.Blocks, 3)
			l.ReleaseRest(2, nil)
			require.Equal(t, 1, q.Stats(0).Blocks)
			require.Zero(t, q.Stats(0).Leased)
			require.NoError(t, q.Close(t.Context()))
			if change == nil {
				require.Equal(t, drops{ReasonShutdown: 1}, dropped)
				return
			}
			require.Empty(t, dropped)
			q, _ = open(t, 1, 100, change)
			require.Equal(t, []int{3}, contents(t, q, 0))
		})
	}
}

// fill pushes blocks of a tenant until there is no room for it, and returns the number of the next one.
func fill(t *testing.T, q *Queue, tenant string) (n int) {
	for !q.Blocks([]string{tenant}) {
		push(t, q, 0, tenantBlock(n, tenant))
		n++
	}
	return n
}

func TestNoTenantTakesAllOfTheQueue(t *testing.T) {
	q, _ := open(t, 1, 120, shared)
	require.Equal(t, 60, fill(t, q, "a"))
	require.Equal(t, 30, fill(t, q, "b"))
	require.Equal(t, 15, fill(t, q, "c"))
	require.False(t, q.Blocks([]string{"d"}))
	require.True(t, q.Blocks([]string{"d", "a"}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.NoError(t, q.WaitRoom(ctx, []string{"d"}))
	require.Error(t, q.WaitRoom(ctx, []string{"a"}))
}

func TestTenantThatDropsDropsItsOwn(t *testing.T) {
	for _, policy := range []OnFull{DropOldest, DropNewest} {
		q, dropped := open(t, 1, 120, func(c *Config) { c.Tenants, c.OnFull = 1000, policy })
		push(t, q, 0, tenantBlock(1000, "b"))
		for n := range 500 {
			push(t, q, 0, tenantBlock(n, "a"))
		}
		push(t, q, 0, tenantBlock(1001, "b"))
		require.Equal(t, int64(2*(bodySize+entryOverhead)), q.destinations[0].tenantStates.shares[q.tenants.numbers["b"]])
		require.InDelta(t, 441, dropped[ReasonFull], 2)
	}
}

// tryNext leases the next block, if one may be sent now.
func tryNext(q *Queue) *Lease {
	q.mu.Lock()
	defer q.mu.Unlock()
	l, entries := q.destinations[0].lease(Bound{})
	if l == nil {
		return nil
	}
	return &Lease{queue: q, lane: l, entries: entries}
}

// TestTenantsThatAreMadeUpLeaveRoom: however many invalid tenants appear, and however much data they send, there is
// room for a tenant that is served, and the number of tenants is limited.
func TestTenantsThatAreMadeUpLeaveRoom(t *testing.T) {
	const most, size = 40, 800
	for name, policy := range map[string]OnFull{"block": Block, "drop_oldest": DropOldest, "drop_newest": DropNewest} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, dropped := open(t, 1, size, func(c *Config) { c.Tenants, c.OnFull = most, policy })
				good := []string{"good"}
				served := func(n int) {
					t.Helper()
					require.False(t, q.Blocks(good))
					require.False(t, q.Refuses(good))
					before := dropped[ReasonFull]
					push(t, q, 0, tenantBlock(-n, "good"))
					require.Equal(t, before, dropped[ReasonFull])
					next(t, q, 0, -n).Done(nil)
				}
				served(1)
				made := 0
				attack := func(tenants int, refuse bool) {
					for range tenants {
						made++
						name := fmt.Sprint("made up ", made)
						for range size {
							if q.Blocks([]string{name}) || q.Refuses([]string{name}) {
								break
							}
							push(t, q, 0, tenantBlock(made, name))
						}
						for l := tryNext(q); l != nil; l = tryNext(q) {
							if refuse { // otherwise they are being sent for ever
								l.Later(0, nil, 24*time.Hour)
							}
						}
						served(1 + made)
					}
				}
				attack(10, true)
				attack(100, false)
				require.LessOrEqual(t, len(q.destinations[0].tenantStates.shares), most)
				time.Sleep(2 * servedLately) // room of the served tenants is now available to others, but they get it back
				attack(100, true)
				require.LessOrEqual(t, len(q.destinations[0].tenantStates.shares), most)
				require.LessOrEqual(t, q.Stats(0).Bytes, q.Stats(0).Capacity*9/8)
				q.Stop()
			})
		})
	}
}

// TestEpochsOfATenantHoldUpNoOther: each tenant only waits for its own epochs, even if it is refused for ever.
func TestEpochsOfATenantHoldUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := open(t, 1, 100, shared)
		push(t, q, 0, tenantBlock(1, "a"), tenantBlock(2, "b"))
		push(t, q, 1, tenantBlock(3, "a"), tenantBlock(4, "b"), tenantBlock(5, "c"))
		push(t, q, 2, tenantBlock(6, "a"), tenantBlock(7, "b"))
		next(t, q, 0, 1).Later(0, nil, 24*time.Hour)
		held := next(t, q, 0, 2)
		next(t, q, 0, 5).Done(nil)
		idle(t, q)
		held.Done(nil)
		next(t, q, 0, 4).Done(nil)
		next(t, q, 0, 7).Done(nil)
		idle(t, q)
		push(t, q, 2, tenantBlock(8, "b"))
		next(t, q, 0, 8).Done(nil)
		require.Len(t, q.destinations[0].fresh.groups, 3)
		time.Sleep(24 * time.Hour)
		for _, n := range []int{1, 3, 6} {
			next(t, q, 0, n).Done(nil)
		}
		require.NoError(t, q.Close(t.Context()))
	})
}

// TestARestartKeepsNobodyOut: data of some tenants that was queued while none was served may take all the room. If the
// destination is back after a restart and refuses them, others get in nevertheless, although none of their blocks is
// queued that could be served.
func TestARestartKeepsNobodyOut(t *testing.T) {
	for name, policy := range map[string]OnFull{"block": Block, "drop_newest": DropNewest} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMedium()
				again := func() *Queue {
					q, _ := open(t, 1, 32, func(c *Config) { c.Tenants, c.OnFull, c.Storage = 1000, policy, on(m) })
					return q
				}
				q := again()
				for n, name := range []string{"a", "b", "c", "d", "e", "f"} {
					for !q.Blocks([]string{name}) && !q.Refuses([]string{name}) {
						push(t, q, 0, tenantBlock(n, name))
					}
				}
				require.GreaterOrEqual(t, q.Stats(0).Bytes, q.Stats(0).Capacity, "it is full")
				require.NoError(t, q.Close(t.Context()))
				q = again()
				for l := tryNext(q); l != nil; l = tryNext(q) {
					l.Later(0, nil, 24*time.Hour)
				}
				for n := range 100 {
					good := []string{fmt.Sprint("good ", n%3)}
					require.False(t, q.Blocks(good) || q.Refuses(good))
					push(t, q, q.NextEpoch(), tenantBlock(100+n, good[0]))
					if policy == DropNewest {
						require.Zero(t, q.destinations[0].refused)
					}
					lane := tryNext(q)
					require.NotNil(t, lane)
					lane.Done(nil)
				}
				require.True(t, q.Blocks([]string{"a"}) || q.Refuses([]string{"a"}))
				require.LessOrEqual(t, q.Stats(0).Bytes, q.Stats(0).Capacity*9/8)
				require.NoError(t, q.Close(t.Context()))
			})
		})
	}
}

// TestARefusedTenantIsNoLongerServed: its reserved room is gone, and comes back when it is served again.
func TestARefusedTenantIsNoLongerServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := open(t, 1, 80, shared)
		d := q.destinations[0]
		push(t, q, 0, tenantBlock(1, "a"), tenantBlock(2, "b"))
		next(t, q, 0, 1).Done(nil)
		next(t, q, 0, 2).Done([]error{errFull})
		require.Len(t, d.tenantStates.served, 1, "what was lost was not served")
		require.Equal(t, 40, fill(t, q, "a"))
		require.Zero(t, d.tenantStates.unserved)
		next(t, q, 0, 0).Later(0, nil, time.Minute)
		require.Equal(t, d.bytes, d.tenantStates.unserved)
		require.Equal(t, 15, fill(t, q, "b"), "of seven eighths")
		require.Zero(t, fill(t, q, "a"))
		time.Sleep(time.Minute)
		next(t, q, 0, 0).Done(nil)
		require.Equal(t, d.bytes-d.tenantStates.shares[q.tenants.numbers["a"]], d.tenantStates.unserved)
		for q.Stats(0).Blocks > 0 {
			l, err := q.Next(t.Context(), 0, Bound{})
			require.NoError(t, err)
			l.Done(nil)
		}
		require.Zero(t, d.tenantStates.unserved)
		require.Empty(t, d.tenantStates.shares)
	})
}

// TestTenantsThatWereAreForgotten: there may be few tenants at a time, but many over the years.
func TestTenantsThatWereAreForgotten(t *testing.T) {
	q, _ := open(t, 1, 1<<20, shared)
	push(t, q, 0, tenantBlock(0, "stays"))
	held := next(t, q, 0, 0)
	for n := 1; n < 20*minTenants; n++ {
		push(t, q, 0, tenantBlock(n, fmt.Sprint("passes ", n)))
		next(t, q, 0, n).Done(nil)
	}
	require.LessOrEqual(t, len(q.tenants.numbers), 2*minTenants)
	require.LessOrEqual(t, len(q.destinations[0].tenantStates.served), 2*minTenants)
	push(t, q, 0, tenantBlock(-1, "stays"))
	idle(t, q) // it is still the one whose lane is leased
	held.Done(nil)
	next(t, q, 0, -1).Done(nil)
}
