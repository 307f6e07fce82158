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
	// Members ask within a small part of their interval, limited in length, one after another: not all at once, but so
	// close together that few changes fall between them, which would reach some members in this round and others in the
	// next.
	spreadPart = 20
	mostSpread = time.Second

	// Members have half of a round, and no more than this, to get their answers. Then all of them apply these.
	mostAnswering = 5 * time.Second

	// mostHeld is how long a new member waits for the next round, in which the other members hear which targets have
	// moved to it. If the next round is further away, it asks at once: it may have restarted, with no other member
	// having its targets.
	mostHeld = 5 * time.Second

	// firstRetry is how soon a member asks again that has no answer yet, or none since members have changed. The wait
	// doubles until the next round.
	firstRetry = time.Second

	// Scrapes begin at multiples of grid. Changes are applied between these, before or after a scrape, not at the same
	// time.
	grid = 100 * time.Millisecond
)

// inRounds is the configuration of a server that divides targets among members.
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

// rounds asks for a job's targets when all members ask, and hands them on when all members do.
//
// So a target that the server gives to another member leaves one of them at the moment at which it comes to the other:
// no scrape is made twice or missed. Rounds begin at multiples of the interval by the wall clock, which all members
// share as far as their timestamps can be compared at all.
type rounds struct {
	job      string
	interval time.Duration
	place    uint64 // of this member among those that ask
	ask      func(ctx context.Context) ([]*targetgroup.Group, error)
	tell     func(ctx context.Context, u Update)
	members  *members
}

// Run implements discovery.Discoverer. What it sends to the manager is used for the manager's metrics only.
func (r rounds) Run(ctx context.Context, up chan<- []*targetgroup.Group) {
	calls, unsubscribe := r.members.subscribe()
	defer unsubscribe()
	last := map[string]*targetgroup.Group{}
	var changed []*targetgroup.Group // not handed on yet
	now := time.Now()
	due := r.next(now)
	if due.at.Sub(now) > mostHeld {
		due = round{now, now}
	}
	// There are no answers yet, or they are about other members than there are now.
	isUrgent, retry := true, firstRetry
	for told := false; ; {
		extra, alive := rest(ctx, time.Until(due.asked), calls)
		if !alive {
			return
		}
		if extra.change != unchanged {
			due, isUrgent, retry = r.outOfTurn(extra), true, firstRetry
			continue
		}
		groups, err := r.ask(ctx)
		if err == nil {
			changed, isUrgent = append(changed, news(last, groups)...), false
		}
		if err != nil || told && len(changed) == 0 {
			now = time.Now()
			before := due
			due = r.next(now)
			if soon := now.Add(retry); isUrgent && soon.Before(due.asked) {
				due = round{soon, before.at}
				if soon.After(due.at) {
					due.at = soon
				}
				retry *= 2
			}
			continue
		}
		if extra, alive = rest(ctx, untilTaken(due.asked, due.at, time.Now()), calls); !alive {
			return
		}
		if extra.change != unchanged { // the answer may be as old as the request
			due, isUrgent, retry = r.outOfTurn(extra), true, firstRetry
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

// next returns when this member asks in the next round, and when all members apply the answers.
func (r rounds) next(now time.Time) round {
	own := time.Duration(r.place % uint64(max(min(r.interval/spreadPart, mostSpread), 1)))
	begun := now.Add(-own).Truncate(r.interval).Add(r.interval)
	return round{begun.Add(own), begun.Add(min(r.interval/2, mostAnswering)).Truncate(grid).Add(grid / 2)}
}

// outOfTurn returns the extra round that members hold because one has come or gone. They saw that in the first third of
// the time between two looks, ask now, and apply the answers soon after the end of that time. If members have only
// gone, they apply them in the middle of it: hardly any target moves that another member still scrapes, and each second
// is one more in which nobody scrapes the others.
func (r rounds) outOfTurn(c call) round {
	every := looks(r.interval)
	asked := time.Now().Add(time.Duration(r.place % uint64(max(every/10, 1))))
	until := every * 11 / 10
	if c.change == fewer {
		until = every / 2
	}
	at := c.begun.Add(until).Truncate(grid).Add(grid / 2)
	if at.Sub(asked) > every || at.Before(asked) { // the clock was set meanwhile, or the look took long
		at = asked
	}
	return round{asked, at}
}

// untilTaken is how long a member that asked waits to apply the answer. If its clock was set back meanwhile, it waits
// no longer than was planned, instead of until the clock is where it was.
func untilTaken(asked, at, now time.Time) time.Duration { return min(at.Sub(now), at.Sub(asked)) }

// rest sleeps until an extra round is called, and returns the call. It returns false if ctx ends first.
func rest(ctx context.Context, d time.Duration, calls <-chan call) (extra call, alive bool) {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return call{}, ctx.Err() == nil
	case extra = <-calls:
		return extra, true
	case <-ctx.Done():
		return call{}, false
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
