// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

// setting is a profile's GOGC, and its GOMEMLIMIT as a share of the cgroup's limit in percent. The rest is for what the
// Go runtime does not count: the executable's pages, mapped files, the page cache of queues.
type setting struct {
	gogc  int
	share int64
}

var profiles = map[Profile]setting{
	ProfileMinimal:     {gogc: minimalThrift.initial, share: 60},
	ProfileLean:        {gogc: leanThrift.initial, share: 80},
	ProfileBalanced:    {gogc: 100, share: 80},
	ProfilePerformance: {gogc: 400, share: 90},
	ProfileAuto:        {gogc: 100, share: 80}, // initial values of the controller
}

// conditions are the input for choosing the knobs.
type conditions struct {
	budget   budget
	limiter  limiter
	envLimit int64 // GOMEMLIMIT of the environment, 0 if unset
	sample   sample
	gcRatio  float64
}

// planner chooses the knobs. Only minimal, lean and auto keep state between two plans.
type planner struct {
	profile  Profile
	gogc     int // 0 means that the profile decides
	override memoryLimit
	auto     controller
	thrift   thrift
}

func newPlanner(cfg *Config) planner {
	override, _ := parseMemoryLimit(cfg.MemoryLimit) // Validate refuses what does not parse
	return planner{profile: cfg.Profile, gogc: cfg.GOGC, override: override, auto: newController(), thrift: newThrift(cfg.Profile)}
}

func (p *planner) plan(c conditions) knobs {
	p.auto.look(c.sample)
	limit := p.limit(c)
	switch {
	case p.gogc != 0:
		return knobs{gogc: p.gogc, limit: limit}
	case p.profile == ProfileAuto:
		return knobs{gogc: p.auto.gogc(c, limit), limit: limit}
	}
	if _, ok := p.profile.thrifty(); ok {
		return knobs{gogc: p.thrift.choose(c.sample), limit: limit}
	}
	return knobs{gogc: profiles[p.profile].gogc, limit: limit}
}

// limit sets no limit by default on a host without a cgroup limit: its memory is not the process's to share out, and a
// share of it would take effect too late or for no reason.
func (p *planner) limit(c conditions) int64 {
	switch {
	case c.envLimit > 0:
		return c.envLimit
	case p.override.bytes > 0:
		return p.chosen(p.override.bytes, c)
	case p.override.percent > 0 && c.budget.total() > 0:
		return p.chosen(percentOf(c.budget.total(), p.override.percent), c)
	}
	limit := int64(noLimit)
	switch {
	case c.budget.cgroup == 0:
	case p.profile == ProfileAuto:
		limit = p.auto.guard(c)
	default:
		limit = percentOf(c.budget.cgroup, profiles[p.profile].share)
	}
	if c.limiter.hard > 0 {
		limit = min(limit, c.limiter.middle())
	}
	return limit
}

// chosen returns the GOMEMLIMIT for the user's limit. For auto, the limit applies to all resident memory of the
// process.
func (p *planner) chosen(limit int64, c conditions) int64 {
	if p.profile == ProfileAuto {
		return p.auto.within(limit, c.sample)
	}
	return limit
}

// percentOf divides first, because budgets are large and must not overflow.
func percentOf(n, percent int64) int64 { return n / 100 * percent }
