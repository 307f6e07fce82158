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
	// MaxShards limits `shards.max`: each is a connection and a goroutine per destination.
	MaxShards = 256
	// lookInterval is the least time between two decisions about the number of shards. It is short, since data queued
	// for few shards is sent by few.
	lookInterval = 100 * time.Millisecond
	// lateLooks is how many consecutive decisions must find the shards too slow before there are more, so that bursts
	// that are sent before the next one need no more of them.
	lateLooks = 2
	// fill is the part of the shards that may be needed, since answers do not come evenly.
	fill = 0.75
	// headroom is the factor by which there should be more shards than needed, so that a backlog is sent soon.
	headroom = 2
	// catchUp is how many times faster than it comes data should be sent after an outage. An outage leaves full
	// requests, each of which takes a round trip, one after another on each shard: so there must be enough shards while
	// the data is queued.
	catchUp = 6
	// unknownLatency is the assumed duration of a request, in seconds, before one has succeeded.
	unknownLatency = 0.2
	// idleTime is how long shards must have been idle before there are fewer.
	idleTime = time.Minute
)

// shards decides the number of shards: more when more full requests come than they can send, given how long each takes,
// fewer when they are hardly used. Few shards make large requests, which compress best, so requests that are not full
// grow before there are more shards. While a destination is down, the number grows so that it can catch up afterwards.
type shards struct {
	cfg ShardsConfig
	now atomic.Int64

	// Since the last decision: when that was, since when requests are counted, and how many full ones came.
	looked, since time.Time
	requests      float64

	came, over float64 // full requests that came lately, and the seconds in which they came
	late       int     // consecutive decisions that found the shards too slow
	idle       float64 // seconds since the shards were too slow or their number changed
	busy       float64 // seconds of these in which the shards were busy
}

// look is what happened since the last decision.
type look struct {
	loads   []load  // by destination
	elapsed float64 // seconds
	came    float64 // full requests that came
	over    float64 // the seconds in which they came
}

// load is what happened at a destination.
type load struct {
	failing bool    // it does not accept data
	busy    float64 // seconds of requests per second
	latency float64 // seconds that a successful request takes; 0 if there was none
	waiting int     // blocks that are not leased
}

func newShards(cfg ShardsConfig) *shards {
	s := &shards{cfg: cfg}
	s.now.Store(int64(cfg.Min))
	return s
}

func (s *shards) count() int { return int(s.now.Load()) }

// begin resets what is known, for a start.
func (s *shards) begin() {
	s.looked = time.Now()
	s.resume()
}

// resume is called when data comes after a pause: the rate before it is no measure of the rate now.
func (s *shards) resume() {
	s.came, s.over = 0, 0
	s.since, s.requests = time.Now(), 0
}

// add counts a request by how full it is. Less than half of one could be part of another.
func (s *shards) add(part float64) {
	if part > 0.5 {
		part = 1
	}
	s.requests += part
}

// suit returns how many shards there should be: as many as there are, unless it is time to look at the loads.
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

// adapt returns the number of shards that suits the loads.
func (s *shards) adapt(l look) int {
	n := s.count()
	s.came, s.over = s.came/2+l.came, s.over/2+l.over
	rate, need, busy := s.came/s.over, 0.0, 0.0
	for _, d := range l.loads {
		if d.failing {
			need = max(need, rate*cmp.Or(d.latency, unknownLatency)*catchUp/headroom)
			busy = 1 // what it could accept is not known
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

// reshard changes the number of shards. What was added before is queued in an epoch that is sent before later ones, so
// that a series which moves to another shard keeps its order.
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
