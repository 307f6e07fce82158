// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inflate

import "encoding/binary"

// fast decodes a coded block for as long as input and output have room for a whole step, without asking in between. It
// returns how far it came, or -1 when the data is invalid. Its state lives in registers, which is why it is one function.
//
// Bits: a refill leaves at least 56. Three literals take at most 33 and a length 20 more; a distance takes at most 28.
func (d *Decoder) fast(out []byte, op int) int {
	src, pos := d.src, d.pos
	bits, have := d.bits, d.have
	lit, dist := d.lits, d.dists
	base := d.base
	lastIn, lastOut := len(src)-ahead, len(out)-Slack

	for pos <= lastIn && op <= lastOut {
		bits |= binary.LittleEndian.Uint64(src[pos:]) << (have & 63)
		pos += int((63 - have) >> 3)
		have |= 56

		e := lit[bits&(1<<litBits-1)]
		if e&literal != 0 {
			bits >>= e & 63
			have -= uint(e & 63)
			out[op] = byte(e >> 16)
			op++
			e = lit[bits&(1<<litBits-1)]
			if e&literal != 0 {
				bits >>= e & 63
				have -= uint(e & 63)
				out[op] = byte(e >> 16)
				op++
				e = lit[bits&(1<<litBits-1)]
				if e&literal != 0 {
					bits >>= e & 63
					have -= uint(e & 63)
					out[op] = byte(e >> 16)
					op++
					e = lit[bits&(1<<litBits-1)]
					if e&literal != 0 {
						bits >>= e & 63
						have -= uint(e & 63)
						out[op] = byte(e >> 16)
						op++
						continue
					}
				}
			}
		}
		if e&special != 0 {
			if e&endOfBlock != endOfBlock {
				if e>>16 == 0 {
					return -1
				}
				bits >>= litBits
				have -= litBits
				e = lit[e>>16+uint32(bits)&(1<<(e>>8&63)-1)]
				if e&literal != 0 {
					bits >>= e & 63
					have -= uint(e & 63)
					out[op] = byte(e >> 16)
					op++
					continue
				}
			}
			if e&special != 0 {
				if e&endOfBlock != endOfBlock {
					return -1
				}
				d.pos, d.bits, d.have = pos, bits>>(e&63), have-uint(e&63)
				d.endBlock()
				return op
			}
		}
		length := int(e>>16) + int(bits&(1<<(e&63)-1)>>(e>>8&63))
		bits >>= e & 63
		have -= uint(e & 63)

		if have < 28 {
			bits |= binary.LittleEndian.Uint64(src[pos:]) << (have & 63)
			pos += int((63 - have) >> 3)
			have |= 56
		}
		e = dist[bits&(1<<distBits-1)]
		if e&special != 0 {
			if e>>16 == 0 {
				return -1
			}
			bits >>= distBits
			have -= distBits
			e = dist[e>>16+uint32(bits)&(1<<(e>>8&63)-1)]
			if e&special != 0 {
				return -1
			}
		}
		distance := int(e>>16) + int(bits&(1<<(e&63)-1)>>(e>>8&63))
		bits >>= e & 63
		have -= uint(e & 63)

		from, to := op-distance, op
		if from < base {
			return -1
		}
		op += length
		switch {
		case distance >= 16: // the first 32 bytes without a look at the length: most matches end there
			copy32(out, to, from)
			for to, from = to+32, from+32; to < op; to, from = to+64, from+64 {
				copy32(out, to, from)
				copy32(out, to+32, from+32)
			}
		case distance >= 8:
			for {
				binary.LittleEndian.PutUint64(out[to:], binary.LittleEndian.Uint64(out[from:]))
				to += 8
				from += 8
				if to >= op {
					break
				}
			}
		default:
			for to < op {
				out[to] = out[from]
				to++
				from++
			}
		}
	}
	d.pos, d.bits, d.have = pos, bits, have
	return op
}

// copy32 copies 32 bytes in two steps: the second may read what the first has written.
func copy32(out []byte, to, from int) {
	dst, src := out[to:to+32], out[from:from+32]
	*(*[16]byte)(dst) = *(*[16]byte)(src)
	*(*[16]byte)(dst[16:]) = *(*[16]byte)(src[16:])
}
