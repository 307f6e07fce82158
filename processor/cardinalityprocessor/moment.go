// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import "math"

// A moment is an instant of a limiter's time: epochs, with 32 bits after the point.
//
// What is known of a series is brought up to date in the first batch that has it in an epoch. If epochs began for all at
// once, such a batch would take twice as long as others. So those of each series begin early, by a part of one that its
// fingerprint says, and every batch has its part of the work.
type moment uint64

// momentIn returns the one when a part of an epoch is over.
func momentIn(epoch uint32, part, parts int) moment {
	return moment(epoch)<<32 + moment(part)<<32/moment(parts)
}

// epoch is the one that all series are in, or have been.
func (m moment) epoch() uint32 { return uint32(m >> 32) }

// epochOf is the one that a series is in: epoch, or the next.
func (m moment) epochOf(fp uint64) uint32 { return uint32((uint64(m) + fp&math.MaxUint32) >> 32) }
