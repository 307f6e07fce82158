// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/prometheus/discovery"
	promhttp "github.com/prometheus/prometheus/discovery/http"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

const (
	// Members ask within so small a part of their interval, and at most so long, one after another: not all in one moment, and so close that what changes
	// is seldom told to some in this round and to others in the next.
	spreadPart = 20
	mostSpread = time.Second

	// From the beginning of a round members have half of it, and no more than this, to get their answers. Then all of them take these up.
	mostAnswering = 5 * time.Second

	// mostHeld is how long a member that has just begun waits for a round, in which the others are told what has become its own. It may as well have
	// ended and begun again, and no other have its targets, so that it asks at once if the next round is further away.
	mostHeld = 5 * time.Second

	// grid is what scrapes begin on, or on parts of it. What is taken up between its points is taken up before or after a scrape, not beside one.
	grid = 100 * time.Millisecond
)

// inRounds is a server of targets that divides these among members.
type inRounds struct {
	*promhttp.SDConfig

	source *Source
}

// askedInRounds returns the configurations of a job whose targets are divided.
func (s *Source) askedInRounds(configs discovery.Configs) discovery.Configs {
	out := slices.Clone(configs)
	for i, cfg := range out {
		if server, ok := cfg.(*promhttp.SDConfig); ok {
			out[i] = inRounds{server, s}
		}
	}
	return out
}

// NewDiscoverer implements discovery.Config.
func (c inRounds) NewDiscoverer(o discovery.DiscovererOptions) (discovery.Discoverer, error) {
	server, err := promhttp.NewDiscovery(c.SDConfig, o)
	if err != nil {
		return nil, err
	}
	metrics := c.source.metrics.RefreshManager.Instantiate(c.Name(), o.SetName)
	return rounds{
		job: o.SetName, interval: time.Duration(c.RefreshInterval), place: xxhash.Sum64String(c.URL), tell: c.source.tell,
		ask: func(ctx context.Context) ([]*targetgroup.Group, error) {
			begun := time.Now()
			groups, err := server.Refresh(ctx)
			metrics.Duration.Observe(time.Since(begun).Seconds())
			metrics.DurationHistogram.Observe(time.Since(begun).Seconds())
			if err != nil && ctx.Err() == nil {
				metrics.Failures.Inc()
				o.Logger.Error("Unable to refresh target groups", "err", err.Error())
			}
			return groups, err
		},
	}, nil
}

// rounds ask for a job's targets when all members ask, and hand on what they are told when all members do.
//
// A target that the server gives to another member leaves one of them in the moment in which it comes to the other: no scrape is made by both, and none is
// left out. A round begins at each multiple of the interval, by the clock of the wall, which members have in common as far as their timestamps are
// comparable at all.
type rounds struct {
	job      string
	interval time.Duration
	place    uint64 // of this member among those that ask
	ask      func(ctx context.Context) ([]*targetgroup.Group, error)
	tell     func(ctx context.Context, u Update)
}

// Run implements discovery.Discoverer. What it says to the manager is for the manager's metrics.
func (r rounds) Run(ctx context.Context, up chan<- []*targetgroup.Group) {
	last := map[string]*targetgroup.Group{}
	now := time.Now()
	asked, at := r.next(now)
	if at.Sub(now) > mostHeld {
		asked, at = now, now
	}
	for told := false; sleep(ctx, time.Until(asked)); asked, at = r.next(time.Now()) {
		groups, err := r.ask(ctx)
		if err != nil {
			continue
		}
		changed := news(last, groups)
		if told && len(changed) == 0 {
			continue
		}
		if !sleep(ctx, untilTaken(asked, at, time.Now())) {
			return
		}
		told = true
		r.tell(ctx, Update{Groups: Groups{r.job: slices.Collect(maps.Values(last))}, At: at})
		select {
		case up <- changed:
		case <-ctx.Done():
			return
		}
	}
}

// next is when this member asks in the round that begins next, and when all members take up what they are told in it.
func (r rounds) next(now time.Time) (asked, at time.Time) {
	own := time.Duration(r.place % uint64(max(min(r.interval/spreadPart, mostSpread), 1)))
	round := now.Add(-own).Truncate(r.interval).Add(r.interval)
	return round.Add(own), round.Add(min(r.interval/2, mostAnswering)).Truncate(grid).Add(grid / 2)
}

// untilTaken is how long a member that asked waits to take up what it was told. If its clock was set back meanwhile, that is no longer than was
// planned: else nothing would be taken up until the clock is again where it was.
func untilTaken(asked, at, now time.Time) time.Duration { return min(at.Sub(now), at.Sub(asked)) }

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
