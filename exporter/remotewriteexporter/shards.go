// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"sync/atomic"
	"time"
)

const (
	// MaxShards bounds `shards.max`: each is a connection and a goroutine per destination.
	MaxShards = 256
	// adaptInterval is how often the number of shards is looked at: soon, since what was queued for few shards is sent
	// by few.
	adaptInterval = 2 * time.Second
	// lateRounds is how many looks in a row must find the shards late before there are more, so that what comes in
	// bursts, and is sent well before the next, needs no more of them.
	lateRounds = 2
	// idleRounds is over how many looks the shards must have been idle before there are fewer.
	idleRounds = 30
)

// shards decides how many there are: more when requests take all the time there is and the queue grows all the same,
// fewer when they hardly take any. Few shards make large requests, which compress best.
type shards struct {
	cfg   ShardsConfig
	now   atomic.Int64
	late  int     // looks in a row that found the shards late
	looks int     // since the shards were late or their number changed
	busy  float64 // parts of the shards' time that these looks found taken, together
}

// load is what a destination did since the last look.
type load struct {
	failing bool    // it does not take data: more connections would not help
	busy    float64 // seconds of requests per second
	waiting int     // blocks that no sender has yet
	lanes   int     // requests that can be on the way at once: fewer than shards while an earlier number's are sent
}

func newShards(cfg ShardsConfig) *shards {
	s := &shards{cfg: cfg}
	s.now.Store(int64(cfg.Min))
	return s
}

func (s *shards) count() int { return int(s.now.Load()) }

// adapt returns the number that suits the loads.
func (s *shards) adapt(loads []load) int {
	n := s.count()
	late, busy := false, 0.0
	for _, l := range loads {
		if l.failing {
			busy = 1 // it is not known what it could take
			continue
		}
		part := l.busy / float64(max(1, min(n, l.lanes)))
		late = late || part > 0.75 && l.waiting >= n
		busy = max(busy, l.busy/float64(n))
	}
	if late {
		s.late++
		s.looks, s.busy = 0, 0
		if s.late >= lateRounds {
			s.late = 0
			return min(2*n, s.cfg.Max)
		}
		return n
	}
	s.late = 0
	s.looks++
	s.busy += busy
	if s.looks < idleRounds {
		return n
	}
	idle := s.busy < 0.25*float64(s.looks)
	s.looks, s.busy = 0, 0
	if idle {
		return max(n/2, s.cfg.Min)
	}
	return n
}

func (in *intake) observe() []load {
	loads := make([]load, len(in.destinations))
	for i, d := range in.destinations {
		stats := in.queue.Stats(i)
		loads[i] = load{
			failing: d.BreakerOpen(), busy: in.telemetry.destinations[i].busy.take(adaptInterval),
			waiting: stats.Blocks - stats.Leased, lanes: stats.Lanes,
		}
	}
	return loads
}

// reshard changes the number of shards. What was added before is queued in an epoch that is sent before what comes after, so
// that a series which moves keeps its order.
func (in *intake) reshard(n int) {
	in.mu.Lock()
	r := in.next()
	blocks := in.encode()
	in.encoder.SetShards(n)
	in.shards.now.Store(int64(n))
	in.mu.Unlock()
	in.settle(r, in.push(blocks))
	in.epoch++
}
