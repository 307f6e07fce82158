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
		job: o.SetName, interval: time.Duration(c.RefreshInterval), place: xxhash.Sum64String(c.URL), tell: c.source.tell, members: &c.source.members,
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
	members  *members
}

// Run implements discovery.Discoverer. What it says to the manager is for the manager's metrics.
func (r rounds) Run(ctx context.Context, up chan<- []*targetgroup.Group) {
	calls, unsubscribe := r.members.subscribe()
	defer unsubscribe()
	last := map[string]*targetgroup.Group{}
	var changed []*targetgroup.Group // and not yet told
	now := time.Now()
	due := r.next(now)
	if due.at.Sub(now) > mostHeld {
		due = round{now, now}
	}
	for told := false; ; {
		begun, alive := rest(ctx, time.Until(due.asked), calls)
		if !alive {
			return
		}
		if !begun.IsZero() {
			due = r.outOfTurn(begun)
			continue
		}
		groups, err := r.ask(ctx)
		if err == nil {
			changed = append(changed, news(last, groups)...)
		}
		if err != nil || told && len(changed) == 0 {
			due = r.next(time.Now())
			continue
		}
		if begun, alive = rest(ctx, untilTaken(due.asked, due.at, time.Now()), calls); !alive {
			return
		}
		if !begun.IsZero() { // what it was told may be as old as that
			due = r.outOfTurn(begun)
			continue
		}
		r.tell(ctx, Update{
			Groups:  Groups{r.job: slices.Collect(maps.Values(last))},
			At:      due.at,
			Orphans: told && r.members.lostSince(due.asked.Add(-looks(r.interval))),
		})
		told = true
		select {
		case up <- changed:
		case <-ctx.Done():
			return
		}
		changed = nil
		due = r.next(time.Now())
	}
}

// next is when this member asks in the round that begins next, and when all members take up what they are told in it.
func (r rounds) next(now time.Time) round {
	own := time.Duration(r.place % uint64(max(min(r.interval/spreadPart, mostSpread), 1)))
	begun := now.Add(-own).Truncate(r.interval).Add(r.interval)
	return round{begun.Add(own), begun.Add(min(r.interval/2, mostAnswering)).Truncate(grid).Add(grid / 2)}
}

// outOfTurn is the round that members hold because one has come or gone. They saw that in the first half of it, ask now, and take up what they are told in the last fifth.
func (r rounds) outOfTurn(begun time.Time) round {
	every := looks(r.interval)
	asked := time.Now().Add(time.Duration(r.place % uint64(max(every/10, 1))))
	at := begun.Add(every * 4 / 5).Truncate(grid).Add(grid / 2)
	if at.Sub(asked) > every { // the clock was set back meanwhile
		at = asked
	}
	return round{asked, at}
}

// untilTaken is how long a member that asked waits to take up what it was told. If its clock was set back meanwhile, that is no longer than was
// planned: else nothing would be taken up until the clock is again where it was.
func untilTaken(asked, at, now time.Time) time.Duration { return min(at.Sub(now), at.Sub(asked)) }

// rest sleeps, unless members are called to a round: then it says when that began. It returns false if ctx ends first.
func rest(ctx context.Context, d time.Duration, calls <-chan time.Time) (called time.Time, alive bool) {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return time.Time{}, ctx.Err() == nil
	case called = <-calls:
		return called, true
	case <-ctx.Done():
		return time.Time{}, false
	}
}

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
