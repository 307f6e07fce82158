// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import "math/bits"

// codeMask keeps codes within arrays of 64 elements; the largest code is below 53.
const codeMask = 63

// literalCode returns the code of a number of literals.
func literalCode(n uint32) uint8 {
	if n < uint32(len(literalCodes)) {
		return literalCodes[n]
	}
	return uint8(bits.Len32(n) - 1 + 19)
}

// matchCode returns the code of a match length, which is given less 3.
func matchCode(n uint32) uint8 {
	if n < uint32(len(matchCodes)) {
		return matchCodes[n]
	}
	return uint8(bits.Len32(n) - 1 + 36)
}

// The number of extra bits after each code.
var (
	literalBits = [64]uint8{
		16: 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
	}
	matchBits = [64]uint8{
		32: 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
	}
)

// The codes of small numbers.
var (
	literalCodes = func() (codes [64]uint8) { fill(codes[:], &literalBits); return codes }()
	matchCodes   = func() (codes [128]uint8) { fill(codes[:], &matchBits); return codes }()
)

func fill(codes []uint8, more *[64]uint8) {
	n := 0
	for code := range more {
		for range 1 << more[code] {
			if n == len(codes) {
				return
			}
			codes[n] = uint8(code)
			n++
		}
	}
}

// Predefined tables, which are not sent.
var (
	predefinedLiterals = predefined(6, 4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1,
		-1, -1, -1, -1)
	predefinedOffsets = predefined(5, 1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1)
	predefinedMatches = predefined(6, 1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
		1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1)
)
