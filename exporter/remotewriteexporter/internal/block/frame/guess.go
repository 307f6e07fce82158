// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import "encoding/binary"

// Guess says that what is from At up to End is mostly what is Distance before, and differs in places that nobody noted. That is looked
// at, and nothing else: a search would look elsewhere wherever it differs.
type Guess struct{ At, End, Distance uint32 }

// follow takes what is from at to end, of a guess. What follows anchor has no sequence yet; it returns where that is in the end.
func (e *Encoder) follow(src []byte, at, end, distance, anchor int) int {
	if distance < 1 || distance >= Window || distance > at {
		return e.search(src, at, end, anchor)
	}
	near := src[:end]
	for s := at; s < min(end, len(src)-margin); {
		k := repeats(binary.LittleEndian.Uint64(src[s:])^binary.LittleEndian.Uint64(src[s-distance:]), false)
		if k < 0 { // it does not go on at one of the five bytes that were looked at
			s += 5
			continue
		}
		if s += k; s+minMatch > end {
			break
		}
		next := s + minMatch + common(near, s+minMatch, distance)
		e.append(src, anchor, s, next, e.offset(distance, s > anchor))
		s, anchor = next, next
	}
	return anchor
}
