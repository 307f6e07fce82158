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
	// MaxElapsedTime gives a block up this long after its first attempt; 0 never.
	MaxElapsedTime time.Duration
	// MaxRetryAfter bounds what a Retry-After header can ask for.
	MaxRetryAfter time.Duration
	// StatusCodes are 4xx that a correction of some configuration will end: repeated at MaxInterval.
	StatusCodes []int
}

// leastSpread is the part of a configured pause that is left of it at the least: a request that drew next to nothing would be made
// again and again without a pause.
const leastSpread = 0.1

// spread is by what all pauses of a request are longer or shorter than configured. Drawn once, it keeps requests apart that failed
// together, where the sums of a draw for each pause would gather around their mean, and no pause is shorter than the one before it.
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

// jitter lengthens d by up to a part of it, so that many who began together do not go on together.
func jitter(d time.Duration, part float64) time.Duration {
	return d + time.Duration(part*float64(d)*rand.Float64()) //nolint:gosec // spreads load, keeps no secret
}

// wait pauses after an attempt. What the destination asked for is the gate's; asking for less than our own pause
// does not shorten it, unless it asked at all: then it knows best.
func (r Retry) wait(ctx context.Context, attempt int, slowly bool, spread float64, retryAfter time.Duration) error {
	if retryAfter > 0 {
		return ctx.Err()
	}
	return sleep(ctx, r.interval(attempt, slowly, spread))
}
