// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/memlimit"
)

const limiterType = "memory_limiter"

// limiter holds the limits of a memory_limiter in use: above soft it refuses data, above hard it forces garbage
// collection. The zero value means no limiter.
type limiter struct {
	soft, hard int64
}

// middle returns the GOMEMLIMIT that fits the limiter best. Above hard, the limiter would refuse data because of
// garbage that the runtime had no reason to collect yet; below soft, the runtime would spend CPU on collecting before
// the limiter reduces the load that causes it.
func (l limiter) middle() int64 { return l.soft + (l.hard-l.soft)/2 }

// knownToLimiter returns the memory that memory_limiter takes percentages of. For cgroup v2, this is the limit of the
// cgroup at the mount point, which in a container is the container's own; for v1, it is the limit of the process's
// cgroup. Without either, it is the host's memory. memory_limiter ignores memory.high and cgroups in between.
func knownToLimiter(root fs.FS, b budget) int64 {
	limit, isV2, err := memlimit.OfMount(root)
	switch {
	case err != nil || !isV2:
		return b.total() // for v1 there is hardly any difference
	case limit == 0:
		return b.host
	}
	return limit
}

// disagreement returns what is wrong with a GOMEMLIMIT in view of the limiter and the budget, "" if nothing is.
func disagreement(limit int64, l limiter, b budget) string {
	switch {
	case limit == noLimit:
		return ""
	case b.total() > 0 && limit > b.total():
		return "GOMEMLIMIT is above the memory budget and cannot keep the process from being killed: lower GOMEMLIMIT"
	case l.hard == 0:
		return ""
	case b.cgroup > 0 && l.soft > b.cgroup:
		return "memory_limiter's soft limit is above the memory budget, so the process will be killed before any data is refused: set limit_mib below the budget. " +
			"A limit_percentage is of the host's memory if the process runs in a cgroup below the root, as systemd's MemoryMax makes it"
	case limit > l.hard:
		return "GOMEMLIMIT is above the memory_limiter's hard limit, so data will be refused over garbage not yet collected: " +
			"lower GOMEMLIMIT or raise the memory_limiter's limit"
	case limit < l.soft:
		return "GOMEMLIMIT is below the memory_limiter's soft limit, so garbage collection will take the CPU before any data is refused: " +
			"raise GOMEMLIMIT or lower the memory_limiter's limit"
	default:
		return ""
	}
}

// limiterConfig are the keys of memory_limiter that set its limits.
type limiterConfig struct {
	LimitMiB        uint32 `mapstructure:"limit_mib"`
	SpikeMiB        uint32 `mapstructure:"spike_limit_mib"`
	LimitPercentage uint32 `mapstructure:"limit_percentage"`
	SpikePercentage uint32 `mapstructure:"spike_limit_percentage"`
}

// resolve computes the limits as memory_limiter does: mebibytes take precedence over percentages, and the default spike
// is a fifth of the limit.
func (c limiterConfig) resolve(total int64) limiter {
	hard, spike := int64(c.LimitMiB)<<20, int64(c.SpikeMiB)<<20
	if hard == 0 {
		hard, spike = percentOf(total, int64(c.LimitPercentage)), percentOf(total, int64(c.SpikePercentage))
	}
	if spike == 0 {
		spike = hard / 5
	}
	return limiter{soft: hard - spike, hard: hard}
}

// findLimiter returns the lowest memory_limiter, processor or extension, that the effective configuration uses.
func findLimiter(conf *confmap.Conf, total int64) (limiter, error) {
	var found limiter
	var errs []error
	for key, used := range usedComponents(conf) {
		for id := range section(conf, key) {
			if kind, _, _ := strings.Cut(id, "/"); kind != limiterType || !slices.Contains(used, id) {
				continue
			}
			one, err := readLimiter(conf, key+confmap.KeyDelimiter+id, total)
			errs = append(errs, err)
			if one.hard > 0 && (found.hard == 0 || one.hard < found.hard) {
				found = one
			}
		}
	}
	return found, errors.Join(errs...)
}

func readLimiter(conf *confmap.Conf, key string, total int64) (limiter, error) {
	sub, err := conf.Sub(key)
	if err != nil {
		return limiter{}, fmt.Errorf("cannot read %s: %w", key, err)
	}
	var cfg limiterConfig
	if err := sub.Unmarshal(&cfg, confmap.WithIgnoreUnused()); err != nil {
		return limiter{}, fmt.Errorf("cannot read %s: %w", key, err)
	}
	return cfg.resolve(total), nil
}

// usedComponents returns the IDs in the service section, by the section that configures them. Components that are not
// in it are never built.
func usedComponents(conf *confmap.Conf) map[string][]string {
	service := section(conf, "service")
	used := map[string][]string{"extensions": names(service["extensions"])}
	pipelines, _ := service["pipelines"].(map[string]any)
	for _, pipeline := range pipelines {
		p, _ := pipeline.(map[string]any)
		used["processors"] = append(used["processors"], names(p["processors"])...)
	}
	return used
}

func section(conf *confmap.Conf, key string) map[string]any {
	m, _ := conf.Get(key).(map[string]any)
	return m
}

func names(list any) []string {
	var out []string
	items, _ := list.([]any)
	for _, item := range items {
		if name, ok := item.(string); ok {
			out = append(out, name)
		}
	}
	return out
}
