// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inflate

import "math/bits"

// A table entry is all that the decoding loop needs to know of the bits it looks at:
//
//	bits  0-7   how many bits to consume: the code's, and those of the number that follows it
//	bits  8-13  how many of them are the code's; in a link, the bits that index the second level
//	bit  14     special: end of block, link or invalid
//	bit  15     end of block
//	bits 16-30  the literal, the least length or distance, or where the linked second level begins
//	bit  31     literal
const (
	special    = 1 << 14
	endOfBlock = 1<<15 | special
	literal    = 1 << 31
)

const (
	litBits  = 11
	distBits = 9
	metaBits = 7
	maxBits  = 15

	maxLits  = 286
	maxDists = 30

	// A complete code has at least two codes behind each link, and each second level is at most as large as the
	// longest code asks for.
	litSize  = 1<<litBits + maxLits/2<<(maxBits-litBits)
	distSize = 1<<distBits + maxDists/2<<(maxBits-distBits)
)

// The symbols' meanings as entries: without the code's length, which the table adds.
var (
	litEntries  [288]uint32
	distEntries [32]uint32
	metaEntries [19]uint32
)

func init() { //nolint:gochecknoinits // tables that follow from a few rules of RFC 1951
	for i := range 256 {
		litEntries[i] = literal | uint32(i)<<16
	}
	litEntries[256] = endOfBlock
	least := uint32(3)
	for i := range uint32(28) {
		extra := max(i>>2, 1) - 1
		litEntries[257+i] = least<<16 | extra
		least += 1 << extra
	}
	litEntries[285] = 258 << 16
	litEntries[286], litEntries[287] = special, special
	least = 1
	for i := range uint32(maxDists) {
		extra := max(i>>1, 1) - 1
		distEntries[i] = least<<16 | extra
		least += 1 << extra
	}
	distEntries[30], distEntries[31] = special, special
	for i := range metaEntries {
		metaEntries[i] = uint32(i) << 16
	}
	var lengths [len(litEntries)]uint8
	for i := range lengths {
		switch {
		case i < 144:
			lengths[i] = 8
		case i < 256:
			lengths[i] = 9
		case i < 280:
			lengths[i] = 7
		default:
			lengths[i] = 8
		}
	}
	build(fixedLit[:], litBits, lengths[:], litEntries[:])
	for i := range distEntries {
		lengths[i] = 5
	}
	build(fixedDist[:], distBits, lengths[:len(distEntries)], distEntries[:])
}

// The tables of blocks that bring no code, from section 3.2.6. Many encoders end each stream with such a block.
var (
	fixedLit  [litSize]uint32
	fixedDist [distSize]uint32
)

// build fills table with the canonical code of the given lengths. Codes longer than root bits are found over a link.
// It reports whether the code is one: complete, or a single code of one bit, or empty.
func build(table []uint32, root uint, lengths []uint8, entries []uint32) bool {
	var count, offset [maxBits + 1]uint16
	for _, l := range lengths {
		count[l&maxBits]++
	}
	count[0] = 0
	longest := uint(maxBits)
	for longest > 0 && count[longest] == 0 {
		longest--
	}
	left, total := 1, uint16(0)
	for l := 1; l <= maxBits; l++ {
		offset[l] = total
		total += count[l]
		if left = left<<1 - int(count[l]); left < 0 {
			return false
		}
	}
	if left > 0 {
		if longest > 1 {
			return false
		}
		for i := range table[:1<<root] {
			table[i] = special
		}
	}
	var sorted [288]uint16
	for symbol, l := range lengths {
		if l != 0 {
			sorted[offset[l&maxBits]] = uint16(symbol)
			offset[l&maxBits]++
		}
	}

	// Up to root bits: the table of n bits, twice, is the table of n+1 bits less the codes of that length.
	code, next, size := uint32(0), 0, 1
	for l := uint(1); l <= root; l++ {
		if size<<1 <= 1<<root && l <= root {
			copy(table[size:size<<1], table[:size])
			size <<= 1
		}
		code <<= 1
		for range count[l] {
			table[reverse(code, l)] = entries[sorted[next]] + uint32(l)<<8 + uint32(l)
			code++
			next++
		}
	}
	// Beyond: a second level per root, all as large as the longest code needs.
	second := longest - root
	free := size
	link := ^uint32(0)
	base := 0
	for l := root + 1; l <= longest; l++ {
		code <<= 1
		for range count[l] {
			prefix := reverse(code>>(l-root), root)
			if prefix != link {
				link, base = prefix, free
				free += 1 << second
				table[prefix] = special | uint32(base)<<16 | uint32(second)<<8 | uint32(root)
			}
			e := entries[sorted[next]] + uint32(l-root)<<8 + uint32(l-root)
			for i := reverse(code&(1<<(l-root)-1), l-root); i < 1<<second; i += 1 << (l - root) {
				table[base+int(i)] = e
			}
			code++
			next++
		}
	}
	return true
}

// reverse mirrors the low n bits of code: deflate sends codes from their highest bit on.
func reverse(code uint32, n uint) uint32 {
	return uint32(bits.Reverse16(uint16(code))) >> (16 - n)
}
