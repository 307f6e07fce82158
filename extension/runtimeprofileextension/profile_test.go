// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestProfilesPlan(t *testing.T) {
	const gib = 1 << 30
	bare := conditions{budget: budget{host: 8 * gib}}
	boxed := conditions{budget: budget{cgroup: gib, host: 8 * gib}}
	f := func(cfg Config, c conditions, gogc int, limit int64) {
		t.Helper()
		p := newPlanner(&cfg)
		assert.Equal(t, knobs{gogc: gogc, limit: limit}, p.plan(c), "%+v", cfg)
	}
	// In a cgroup each profile uses its share; on a host without one there is no limit.
	f(Config{Profile: ProfileMinimal}, boxed, 50, percentOf(gib, 60))
	f(Config{Profile: ProfileMinimal}, bare, 50, noLimit)
	f(Config{Profile: ProfileLean}, boxed, 25, percentOf(gib, 80))
	f(Config{Profile: ProfileLean}, bare, 25, noLimit)
	f(Config{Profile: ProfileBalanced}, boxed, 100, percentOf(gib, 80))
	f(Config{Profile: ProfileBalanced}, bare, 100, noLimit)
	f(Config{Profile: ProfilePerformance}, boxed, 400, percentOf(gib, 90))
	f(Config{Profile: ProfilePerformance}, bare, 400, noLimit)
	f(Config{Profile: ProfileAuto}, boxed, 100, percentOf(gib, 80))
	f(Config{Profile: ProfileAuto}, bare, 100, noLimit)

	// Keys take precedence over the profile, and the environment over keys.
	f(Config{Profile: ProfileMinimal, GOGC: 200}, bare, 200, noLimit)
	f(Config{Profile: ProfileMinimal, MemoryLimit: "512MiB"}, boxed, 50, 512<<20)
	f(Config{Profile: ProfileMinimal, MemoryLimit: "50%"}, boxed, 50, percentOf(gib, 50))
	f(Config{Profile: ProfileMinimal, MemoryLimit: "50%"}, bare, 50, percentOf(8*gib, 50))
	f(Config{Profile: ProfileMinimal, MemoryLimit: "50%"}, conditions{}, 50, noLimit)
	pinned := boxed
	pinned.envLimit = 300 << 20
	f(Config{Profile: ProfileMinimal, MemoryLimit: "512MiB"}, pinned, 50, 300<<20)

	// A memory_limiter limits the profile's choice, but not the user's.
	limited := func(c conditions) conditions {
		c.limiter = limiter{soft: 400 << 20, hard: 500 << 20}
		return c
	}
	f(Config{Profile: ProfileBalanced}, limited(boxed), 100, 450<<20)
	f(Config{Profile: ProfileBalanced}, limited(bare), 100, 450<<20)
	f(Config{Profile: ProfileBalanced, MemoryLimit: "512MiB"}, limited(boxed), 100, 512<<20)
}
