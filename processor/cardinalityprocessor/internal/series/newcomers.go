// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"time"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/fair"
)

// A pace limits the newcomers of a group per minute. In a group of several tenants, each tenant's newcomers are counted
// separately: a tenant that sends new series all the time leaves some places to others. The registry's lock is held in
// all that follows.

// hurried reports whether a group has used its pace of new series, or the tenant its part of that, so that it must
// wait.
func (r *registry) hurried(p *Place, account uint64, now int64) bool {
	g := r.Groups[p.Key]
	if g == nil || p.party || p.Terms.Newcomers.Each == 0 {
		return false
	}
	pace := p.Terms.Newcomers
	used, ok := pace.Take(g.newcomers, now)
	if !ok || !r.divided(p) || g.shares == nil {
		return !ok
	}
	return !g.shares.MayTake(account, pace.Spent(g.newcomers, now), now+int64(time.Minute)-used, int64(pace.Each))
}

// divided reports whether several tenants share the group of a place.
func (r *registry) divided(p *Place) bool { return r.Apart && !p.Limit.OfTenants() }

// share returns a tenant's part of a group's pace, nil if there is no room to remember it.
func (r *registry) share(g *Group, account uint64, patience, now int64) *fair.Part {
	if g.shares == nil {
		g.shares = &fair.Paces{}
	}
	before := g.shares.Len()
	part := g.shares.Of(account, r.shares < r.maxSets, patience, now)
	r.shares += g.shares.Len() - before
	return part
}

// brief records that a group has no room left in its pace of newcomers, or of those of a tenant, and reports whether
// that has not lasted long.
func (r *registry) brief(p *Place, account uint64, now, patience int64) bool {
	g := r.Groups[p.Key]
	waits := &g.waits
	if r.divided(p) {
		if part := r.share(g, account, patience, now); part != nil {
			waits = part
		}
	}
	if d := now - waits.Denied; d > patience || d < 0 {
		waits.Pressed = now
	}
	waits.Denied = now
	return now-waits.Pressed < patience
}

// welcome takes one newcomer from the pace of each group.
func (r *registry) welcome(places []Place, account uint64, now, patience int64) {
	for i := range places {
		p := &places[i]
		if p.party || p.Terms.Newcomers.Each == 0 {
			continue
		}
		g := r.Groups[p.Key]
		g.newcomers, _ = p.Terms.Newcomers.Take(g.newcomers, now)
		if r.divided(p) {
			part := r.share(g, account, patience, now)
			g.shares.Take(part, int64(p.Terms.Newcomers.Each))
		}
	}
}
