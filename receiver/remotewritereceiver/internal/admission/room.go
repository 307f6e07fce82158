// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"math/bits"
	"sync"
)

// rooms are idle memory for bodies: of leastRoom, and of sizes that double from firstRoom on. The garbage collector takes
// those that are idle for a while.
var rooms [roomSizes]sync.Pool

// roomSizes is the number of sizes that are kept: bodies larger than 2 MiB are rare.
const roomSizes = 8

// getRoom returns an empty slice with capacity n, one of the sizes.
func getRoom(n int) []byte {
	if i, ok := roomOf(n); ok {
		if b, ok := rooms[i].Get().(*[]byte); ok {
			return (*b)[:0]
		}
	}
	return make([]byte, 0, n)
}

// putRoom gives it back.
func putRoom(b []byte) {
	if i, ok := roomOf(cap(b)); ok {
		rooms[i].Put(&b)
	}
}

// wholeRoom is the memory for a body of a known length: one of the sizes, unless that is more than most. One byte more
// tells that the body has ended.
func wholeRoom(length, most int) int {
	for n := firstRoom; n < firstRoom<<(roomSizes-1); n *= 2 {
		if n > length && n <= most {
			return n
		}
	}
	return length + 1
}

func roomOf(n int) (i int, ok bool) {
	if n == leastRoom {
		return 0, true
	}
	i = bits.TrailingZeros(uint(n) / firstRoom)
	return i + 1, n == firstRoom<<i && i+1 < roomSizes
}
