// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/confkeys"
)

// Profile names a trade between CPU and memory.
type Profile string

// The profiles; the README says what each sets and why.
const (
	ProfileMinimal     Profile = "minimal"
	ProfileLean        Profile = "lean"
	ProfileBalanced    Profile = "balanced"
	ProfilePerformance Profile = "performance"
	ProfileAuto        Profile = "auto"
)

const (
	// minMemoryLimit is the lowest limit: below it, a collector would only collect garbage, and such a number is a
	// percentage without its sign.
	minMemoryLimit     = 16 << 20
	minGOGC            = 10
	minRefreshInterval = time.Second
)

// Config is what the user writes under `runtimeprofile`.
type Config struct {
	// Profile is minimal, lean, balanced, performance or auto. Default balanced.
	Profile Profile `mapstructure:"profile"`

	// GOGC replaces the profile's value, in percent. Default 0: the profile's.
	// Not with auto, which adjusts GOGC itself.
	GOGC int `mapstructure:"gogc"`

	// MemoryLimit replaces the profile's GOMEMLIMIT: bytes with an optional
	// unit (512MiB) or a percentage of the memory budget (80%). With auto it is
	// for all the process has resident. Default "": the profile's.
	MemoryLimit string `mapstructure:"memory_limit"`

	// RefreshInterval is how often the memory budget is read, and the binary's
	// pages are released, again. Default 1m.
	RefreshInterval time.Duration `mapstructure:"refresh_interval"`

	// ReleaseBinaryPages unmaps the pages of the executable, 10 s after the
	// pipelines are ready (or RefreshInterval, if that is less), then 3, 6, 12 s and
	// so on after the time before, up to half a RefreshInterval, and from then on at
	// each refresh, every 10 s at most; what is used is mapped again.
	// Default: true in minimal, lean and auto, false otherwise. Linux only.
	ReleaseBinaryPages *bool `mapstructure:"release_binary_pages"`

	_ struct{}
}

// Unmarshal reports unknown keys with suggestions.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confkeys.Unmarshal(conf, c) }

// Validate reports all faults of the configuration.
func (c *Config) Validate() error {
	var errs []error
	if _, known := profiles[c.Profile]; !known {
		errs = append(errs, fmt.Errorf("`profile` must be minimal, lean, balanced, performance or auto, got %q", c.Profile))
	}
	switch {
	case c.GOGC == 0:
	case c.GOGC < minGOGC || c.GOGC > math.MaxInt32:
		errs = append(errs, fmt.Errorf("`gogc` must be at least %d, or 0 for the profile's value, got %d", minGOGC, c.GOGC))
	case c.Profile == ProfileAuto:
		errs = append(errs, errors.New("`gogc` pins what `profile: auto` adjusts: remove one of them"))
	}
	if _, err := parseMemoryLimit(c.MemoryLimit); err != nil {
		errs = append(errs, err)
	}
	if c.RefreshInterval < minRefreshInterval {
		errs = append(errs, fmt.Errorf("`refresh_interval` must be at least %v, got %v", minRefreshInterval, c.RefreshInterval))
	}
	return errors.Join(errs...)
}

// releaseBinaryPages returns the key's value or the profile's default.
func (c *Config) releaseBinaryPages() bool {
	if c.ReleaseBinaryPages != nil {
		return *c.ReleaseBinaryPages
	}
	return c.Profile == ProfileMinimal || c.Profile == ProfileLean || c.Profile == ProfileAuto
}

// memoryLimit is a number of bytes or a percentage; the zero value is neither.
type memoryLimit struct {
	bytes   int64
	percent int64
}

var units = []struct {
	suffix string
	shift  uint
}{{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"B", 0}}

func parseMemoryLimit(s string) (memoryLimit, error) {
	if s == "" {
		return memoryLimit{}, nil
	}
	if digits, ok := strings.CutSuffix(s, "%"); ok {
		percent, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || percent < 1 || percent > 100 {
			return memoryLimit{}, fmt.Errorf("`memory_limit` as a percentage must be 1%% to 100%%, got %q", s)
		}
		return memoryLimit{percent: percent}, nil
	}
	digits, shift := s, uint(0)
	for _, unit := range units {
		if rest, ok := strings.CutSuffix(s, unit.suffix); ok {
			digits, shift = strings.TrimSpace(rest), unit.shift
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift {
		return memoryLimit{}, fmt.Errorf("`memory_limit` must be bytes (536870912, 512MiB, 2GiB) or a percentage (80%%), got %q", s)
	}
	if n <<= shift; n < minMemoryLimit {
		return memoryLimit{}, fmt.Errorf("`memory_limit` must be at least 16MiB, got %q; a percentage ends in %%", s)
	}
	return memoryLimit{bytes: n}, nil
}
