// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package moment has the time of a limiter, in epochs.
package moment

import (
	"math"
)

// A Moment is an instant of a limiter's time: epochs, with 32 bits after the point.
//
// What is known of a series is brought up to date in the first batch that has it in an epoch. If epochs began for all at
// once, such a batch would take twice as long as others. So those of each series begin early, by a part of one that its
// fingerprint says, and every batch has its part of the work.
type Moment uint64

// In returns the one when a part of an epoch is over.
func In(epoch uint32, part, parts int) Moment {
	return Moment(epoch)<<32 + Moment(part)<<32/Moment(parts)
}

// Epoch is the one that all series are in, or have been.
func (m Moment) Epoch() uint32 { return uint32(m >> 32) }

// EpochOf is the one that a series is in: epoch, or the next.
func (m Moment) EpochOf(fp uint64) uint32 { return uint32((uint64(m) + fp&math.MaxUint32) >> 32) }

// IdleEpochs is how many epochs an idle timeout has.
const IdleEpochs = 16

// Silence is for how many epochs something was silent that was last seen in one. While somebody takes a look the next may begin: what was
// seen in that is not silent at all.
func Silence(epoch, seen uint32) uint32 { return uint32(max(0, int32(epoch-seen))) }
