// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"math"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/config/configretry"
)

// backoff returns the delay after the given number of failures, from 1: exponential and randomized, as configured in
// retry_on_failure.
func backoff(cfg configretry.BackOffConfig, failures int) time.Duration {
	delay := float64(cfg.InitialInterval) * math.Pow(max(1, cfg.Multiplier), float64(failures-1))
	if cfg.MaxInterval > 0 {
		delay = min(delay, float64(cfg.MaxInterval))
	}
	return Spread(time.Duration(delay), cfg.RandomizationFactor)
}

// Retry is the delay before another attempt. It starts with what the server asks for, and grows like any other.
func Retry(cfg configretry.BackOffConfig, failures int, asked time.Duration) time.Duration {
	if asked <= 0 {
		return backoff(cfg, failures)
	}
	cfg.InitialInterval, cfg.MaxInterval = asked, max(cfg.MaxInterval, asked)
	return max(asked, backoff(cfg, failures))
}

// Reconnect returns the delay before a slot opens another stream after the given number of useless ones. The first
// delay is tiny: usually the server is back, or another one is there.
func Reconnect(cfg configretry.BackOffConfig, failures int) time.Duration {
	const first = 20 * time.Millisecond
	if failures == 0 {
		return 0
	}
	delay := min(first<<min(failures-1, 20), max(cfg.MaxInterval, first))
	return Spread(delay, 0.5)
}

// Spread changes a duration randomly, by up to the fraction either way.
func Spread(d time.Duration, fraction float64) time.Duration {
	return time.Duration(float64(d) * (1 + fraction*(2*rand.Float64()-1))) //nolint:gosec // it is no secret
}
