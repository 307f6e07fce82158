// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"cmp"
	"math"
	"sync/atomic"
	"time"
)

const (
	// MaxShards bounds `shards.max`: each is a connection and a goroutine per destination.
	MaxShards = 256
	// lookInterval is how often the number of shards is looked at, at most: soon, since what was queued for few shards is
	// sent by few.
	lookInterval = 100 * time.Millisecond
	// lateLooks is how many looks in a row must find the shards late before there are more, so that what comes in
	// bursts, and is sent well before the next, needs no more of them.
	lateLooks = 2
	// fill is the part of the shards that may be needed: answers do not come evenly.
	fill = 0.75
	// headroom is how many times the shards that are needed there are to be, so that what has piled up is soon sent.
	headroom = 2
	// catchUp is how many times as fast as it comes data should be sendable after an outage. What an outage leaves in full
	// requests takes a trip for each, one after another on each shard: so there are to be enough while it is queued.
	catchUp = 6
	// unknownLatency is how long a request is taken to last, in seconds, before there was one that did not fail.
	unknownLatency = 0.2
	// idleTime is how long the shards must have been idle before there are fewer.
	idleTime = time.Minute
)

// shards decides how many there are: more when more full requests come than they can send, however long each takes,
// fewer when they are hardly used. Few shards make large requests, which compress best; and requests that are not full
// grow before there are more of them. A destination that is down is prepared for: when it is back, it is to catch up.
type shards struct {
	cfg ShardsConfig
	now atomic.Int64

	// Since the last look: when that was, since when requests are counted, and how many full ones came.
	looked, since time.Time
	requests      float64

	came, over float64 // full requests that came lately, and in how many seconds
	late       int     // looks in a row that found the shards late
	idle       float64 // seconds since the shards were late or their number changed
	busy       float64 // seconds of these that the shards were busy
}

// look is what happened since the last.
type look struct {
	loads   []load  // of the destinations
	elapsed float64 // seconds
	came    float64 // full requests that came
	over    float64 // in how many of the seconds
}

// load is what a destination did.
type load struct {
	failing bool    // it does not take data
	busy    float64 // seconds of requests per second
	latency float64 // seconds that a request takes unless it fails; 0 before there was one
	waiting int     // blocks that no sender has yet
}

func newShards(cfg ShardsConfig) *shards {
	s := &shards{cfg: cfg}
	s.now.Store(int64(cfg.Min))
	return s
}

func (s *shards) count() int { return int(s.now.Load()) }

// begin is for a start: nothing was seen before.
func (s *shards) begin() {
	s.looked = time.Now()
	s.resume()
}

// resume is for when data comes after a pause: what came before does not tell how much comes now.
func (s *shards) resume() {
	s.came, s.over = 0, 0
	s.since, s.requests = time.Now(), 0
}

// add counts a request by how full it is. What is less than half could be part of another.
func (s *shards) add(part float64) {
	if part > 0.5 {
		part = 1
	}
	s.requests += part
}

// suit tells how many there are to be: as many as there are, unless it is time to look at the loads.
func (s *shards) suit(loads func(elapsed time.Duration) []load) int {
	now := time.Now()
	elapsed := now.Sub(s.looked)
	if elapsed < lookInterval {
		return s.count()
	}
	n := s.adapt(look{loads: loads(elapsed), elapsed: elapsed.Seconds(), came: s.requests, over: now.Sub(s.since).Seconds()})
	s.looked, s.since, s.requests = now, now, 0
	return n
}

// adapt returns the number that suits what is seen.
func (s *shards) adapt(l look) int {
	n := s.count()
	s.came, s.over = s.came/2+l.came, s.over/2+l.over
	rate, need, busy := s.came/s.over, 0.0, 0.0
	for _, d := range l.loads {
		if d.failing {
			need = max(need, rate*cmp.Or(d.latency, unknownLatency)*catchUp/headroom)
			busy = 1 // it is not known what it could take
			continue
		}
		if d.waiting >= n {
			need = max(need, rate*d.latency)
		}
		busy = max(busy, d.busy/float64(n))
	}
	if need > fill*float64(n) {
		s.idle, s.busy = 0, 0
		if s.late++; s.late < lateLooks {
			return n
		}
		s.late = 0
		return min(int(math.Ceil(headroom*need)), s.cfg.Max)
	}
	s.late = 0
	s.idle += l.elapsed
	s.busy += busy * l.elapsed
	if s.idle < idleTime.Seconds() {
		return n
	}
	idle := s.busy < 0.25*s.idle
	s.idle, s.busy = 0, 0
	if idle {
		return max(n/2, s.cfg.Min)
	}
	return n
}

func (in *intake) loads(elapsed time.Duration) []load {
	loads := make([]load, len(in.destinations))
	for i, d := range in.destinations {
		stats := in.queue.Stats(i)
		loads[i] = load{failing: d.BreakerOpen(), waiting: stats.Waiting}
		loads[i].busy, loads[i].latency = in.telemetry.destinations[i].busy.take(elapsed)
	}
	return loads
}

// reshard changes the number of shards. What was added before is queued in an epoch that is sent before what comes after, so
// that a series which moves keeps its order.
func (in *intake) reshard(n int) {
	in.mu.Lock()
	r, tenants := in.next()
	blocks := in.encode(tenants)
	in.encoder.SetShards(n)
	in.shards.now.Store(int64(n))
	in.mu.Unlock()
	in.enqueue(r, blocks)
	in.epoch++
}
