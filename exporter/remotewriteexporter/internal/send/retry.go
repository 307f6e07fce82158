// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"context"
	"math"
	"math/rand/v2"
	"time"
)

// Retry says when a request is repeated.
type Retry struct {
	InitialInterval     time.Duration
	MaxInterval         time.Duration
	Multiplier          float64
	RandomizationFactor float64
	// MaxElapsedTime gives up a block this long after its first attempt; 0 never.
	MaxElapsedTime time.Duration
	// MaxRetryAfter limits what a Retry-After header can ask for.
	MaxRetryAfter time.Duration
	// StatusCodes are 4xx that correcting some configuration will end: these are repeated at MaxInterval.
	StatusCodes []int
}

// leastSpread is the least part of a configured pause: otherwise a request that drew next to nothing would be repeated
// without a pause.
const leastSpread = 0.1

// spread is the factor of all pauses of a request. Drawn once, it keeps requests apart that failed together, whereas
// sums of separate draws would gather around their mean, and no pause is shorter than the one before it.
func (r Retry) spread() float64 {
	least, most := max(1-r.RandomizationFactor, leastSpread), 1+r.RandomizationFactor
	return least + (most-least)*rand.Float64() //nolint:gosec // spreads load, keeps no secret
}

// interval is the pause after an attempt, counted from 0.
func (r Retry) interval(attempt int, slowly bool, spread float64) time.Duration {
	d := float64(r.MaxInterval)
	if !slowly {
		d = min(d, float64(r.InitialInterval)*math.Pow(r.Multiplier, float64(attempt)))
	}
	return time.Duration(spread * d)
}

// jitter lengthens d by up to a part of it, so that many clients that began together do not continue together.
func jitter(d time.Duration, part float64) time.Duration {
	return d + time.Duration(part*float64(d)*rand.Float64()) //nolint:gosec // spreads load, keeps no secret
}

// wait pauses after an attempt. The gate enforces what the destination asked for; a destination that asks for less than
// our own pause does not shorten it, unless it did ask: then it knows best.
func (r Retry) wait(ctx context.Context, attempt int, slowly bool, spread float64, retryAfter time.Duration) error {
	if retryAfter > 0 {
		return ctx.Err()
	}
	return sleep(ctx, r.interval(attempt, slowly, spread))
}
