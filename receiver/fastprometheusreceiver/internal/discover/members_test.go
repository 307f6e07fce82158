// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// A member counts as gone from the first poll without it. A list without members, as from a server that has just
// started, says nothing.
func TestMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m members
		begun := time.Now()
		assert.Equal(t, unchanged, m.are(nil))
		assert.Equal(t, unchanged, m.are([]string{"b", "a"}), "who they were is not known")
		assert.Equal(t, unchanged, m.are([]string{"a", "b"}))
		assert.Equal(t, others, m.are([]string{"a", "b", "c"}))
		assert.Equal(t, unchanged, m.are([]string{}))
		assert.False(t, m.lostSince(begun), "who comes has taken nothing along")
		time.Sleep(time.Minute)
		assert.Equal(t, others, m.are([]string{"c", "a", "d"}))
		assert.True(t, m.lostSince(begun.Add(time.Minute)))
		time.Sleep(time.Minute)
		assert.Equal(t, unchanged, m.are([]string{"a", "c", "d"}))
		assert.False(t, m.lostSince(begun.Add(time.Minute+time.Nanosecond)))
		assert.Equal(t, fewer, m.are([]string{"d"}))
		assert.True(t, m.lostSince(begun.Add(2*time.Minute)))
	})
}

// If members poll rarely and one of them goes, all others poll soon and apply the result at the same moment, including
// those that have just polled in their round. If they poll often, that is soon enough. If another comes for the one that
// has gone, they take longer: targets may move between members that live.
// A job that still asks for targets learns of the latest change, and of members that came before it.
func TestALaterCallReplacesTheOneThatWaits(t *testing.T) {
	var m members
	calls, unsubscribe := m.subscribe()
	defer unsubscribe()
	begun := time.Now()
	for _, changes := range [][]change{{fewer, others}, {others, fewer}} {
		for i, c := range changes {
			m.call(call{c, begun.Add(time.Duration(i))})
		}
		require.Equal(t, call{others, begun.Add(1)}, <-calls)
		require.Empty(t, calls)
	}
	m.call(call{fewer, begun})
	require.Equal(t, call{fewer, begun}, <-calls)
}

func TestRoundOutOfTurn(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 5 * time.Minute} {
		for _, into := range []time.Duration{200 * time.Millisecond, 700 * time.Millisecond, 1700 * time.Millisecond, 4 * time.Second, 17 * time.Second} {
			roundOutOfTurn(t, interval, into, []string{"lives"}, mostBetweenLooks*12/10)
			roundOutOfTurn(t, interval, into, []string{"comes", "lives"}, mostBetweenLooks*19/10)
		}
	}
}

// roundOutOfTurn checks that members apply an answer this soon after they have changed, at any time in an interval.
func roundOutOfTurn(t *testing.T, interval, into time.Duration, now []string, most time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		gone := time.Now().Truncate(interval).Add(3*interval + into)
		var mu sync.Mutex
		var updates []Update
		tell := func(_ context.Context, u Update) {
			mu.Lock()
			defer mu.Unlock()
			assert.True(t, time.Now().Equal(u.At) || len(updates) < 5, "it is told when it counts")
			updates = append(updates, u)
		}
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 5 {
			s, err := NewSource(zap.NewNop(), prometheus.NewRegistry(), nil)
			require.NoError(t, err)
			defer s.Close()
			place := uint64(i) * 0x9e3779b97f4a7c15
			fails := false
			s.Watch(interval, place, func(context.Context) ([]string, error) {
				if fails = !fails; fails && time.Now().Before(gone) { // some polls fail, which changes nothing
					return nil, errors.New("not now")
				}
				if time.Now().Before(gone) {
					return []string{"dies", "lives"}, nil
				}
				return slices.Clone(now), nil
			})
			r := rounds{job: "job", interval: interval, place: place, members: &s.members, tell: tell, ask: func(context.Context) ([]*targetgroup.Group, error) {
				address := model.LabelValue("old:1")
				if !time.Now().Before(gone) {
					address = "new:1"
				}
				return []*targetgroup.Group{{Source: "s", Targets: []model.LabelSet{{model.AddressLabel: address}}}}, nil
			}}
			go r.Run(ctx, make(chan []*targetgroup.Group, 100))
		}
		time.Sleep(5*interval + into)
		cancel()
		synctest.Wait()
		require.Len(t, updates, 10)
		for i, u := range updates {
			assert.Equal(t, i >= 5, u.Orphans)
		}
		for _, u := range updates[5:] {
			assert.Equal(t, updates[5].At, u.At)
			assert.Less(t, u.At.Sub(gone), min(3*interval/2, most)+grid)
		}
	})
}
