// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"encoding/binary"
	"errors"
	"io"
)

// Errors of invalid input. The output of a failed call must not be used.
var (
	ErrCorrupt   = errors.New("deflate: invalid data")
	ErrTruncated = io.ErrUnexpectedEOF
	ErrLimit     = errors.New("output limit exceeded")
)

const (
	// Slack is the room that the decoder needs after what it writes: the longest match and the literals before it, and
	// what copying in words may add.
	Slack = 320
	// window is how far back a match may reach.
	window = 32 << 10
	// ahead is how much input the fast loop needs: three refills of at most eight bytes.
	ahead = 32
)

// order is how the lengths of the code of code lengths are sent.
var order = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// A Decoder decodes one body after the other. It is 30 kB of tables; its zero value is ready.
type Decoder struct {
	src  []byte
	pos  int    // the next byte of src to load
	bits uint64 // loaded bits; those above have are what src holds there
	have uint   // how many of bits are loaded

	phase  phase
	last   bool // the block is the stream's last
	stored int  // what is left of a stored block
	base   int  // where in the output the stream's history begins

	lits  *[litSize]uint32 // of the block: those below, or the fixed ones
	dists *[distSize]uint32

	lit     [litSize]uint32
	dist    [distSize]uint32
	meta    [1 << metaBits]uint32
	lengths [maxLits + maxDists]uint8
}

type phase uint8

const (
	blockHeader phase = iota
	storedBlock
	codedBlock
	finished
)

// start begins a stream at src[pos:], whose output goes to out[base:].
func (d *Decoder) start(pos, base int) {
	d.pos, d.base = pos, base
	d.bits, d.have = 0, 0
	d.phase, d.last = blockHeader, false
}

// run decodes into out from op on until the stream has ended or out has less than Slack left. It returns how far it
// came.
//
// On ErrTruncated, all of src has been decoded; run may be called again with the rest of d.src, from d.pos on, followed
// by more input.
func (d *Decoder) run(out []byte, op int) (int, error) {
	for {
		var err error
		switch d.phase {
		case blockHeader:
			before := d.mark()
			if err = d.header(); errors.Is(err, ErrTruncated) {
				d.back(before)
			}
		case storedBlock:
			n := min(d.stored, len(out)-op, len(d.src)-d.pos)
			copy(out[op:op+n], d.src[d.pos:])
			op, d.pos, d.stored = op+n, d.pos+n, d.stored-n
			switch {
			case d.stored == 0:
				d.endBlock()
			case d.pos == len(d.src):
				return op, ErrTruncated
			default:
				return op, nil
			}
		case codedBlock:
			if op = d.fast(out, op); op < 0 {
				return 0, ErrCorrupt
			}
			if d.phase != codedBlock {
				continue
			}
			if len(out)-op < Slack {
				return op, nil
			}
			op, err = d.careful(out, op)
		case finished:
			return op, nil
		}
		if err != nil {
			return op, err
		}
	}
}

// A mark is a place in the input between two blocks or symbols.
type mark struct {
	pos  int
	bits uint64
	have uint
	last bool
}

func (d *Decoder) mark() mark { return mark{d.pos, d.bits, d.have, d.last} }

// back returns to a place in the input, since the element there is not complete.
func (d *Decoder) back(to mark) { d.pos, d.bits, d.have, d.last = to.pos, to.bits, to.have, to.last }

func (d *Decoder) endBlock() {
	d.phase = blockHeader
	if d.last {
		d.phase = finished
		d.unload()
	}
}

// unload returns whole bytes that were loaded and not used to the input.
func (d *Decoder) unload() {
	d.pos -= int(d.have >> 3)
	d.bits, d.have = 0, 0
}

// pause returns whole bytes and keeps the remaining bits of the byte before: d.src is about to be replaced.
func (d *Decoder) pause() {
	d.pos -= int(d.have >> 3)
	d.have &= 7
	d.bits &= 1<<d.have - 1
}

// refill loads bytes one by one, where fewer than eight may be left.
func (d *Decoder) refill() {
	for d.have <= 56 && d.pos < len(d.src) {
		d.bits |= uint64(d.src[d.pos]) << d.have
		d.pos++
		d.have += 8
	}
}

func (d *Decoder) drop(n uint) {
	d.bits >>= n & 63
	d.have -= n
}

func (d *Decoder) header() error {
	d.refill()
	if d.have < 3 {
		return ErrTruncated
	}
	d.last = d.bits&1 != 0
	kind := d.bits >> 1 & 3
	d.drop(3)
	switch kind {
	case 0:
		d.drop(d.have & 7)
		d.unload()
		if len(d.src)-d.pos < 4 {
			return ErrTruncated
		}
		n := binary.LittleEndian.Uint16(d.src[d.pos:])
		if n != ^binary.LittleEndian.Uint16(d.src[d.pos+2:]) {
			return ErrCorrupt
		}
		d.pos += 4
		d.stored = int(n)
		d.phase = storedBlock
		return nil
	case 1:
		d.lits, d.dists = &fixedLit, &fixedDist
		d.phase = codedBlock
		return nil
	case 2:
		d.lits, d.dists = &d.lit, &d.dist
		if err := d.dynamic(); err != nil {
			return err
		}
		d.phase = codedBlock
		return nil
	default:
		return ErrCorrupt
	}
}

// dynamic reads a block's codes.
func (d *Decoder) dynamic() error {
	d.refill()
	if d.have < 14 {
		return ErrTruncated
	}
	lits := int(d.bits&31) + 257
	dists := int(d.bits>>5&31) + 1
	metas := int(d.bits>>10&15) + 4
	d.drop(14)
	if lits > maxLits || dists > maxDists {
		return ErrCorrupt
	}
	var meta [len(order)]uint8
	for _, symbol := range order[:metas] {
		if d.have < 3 {
			if d.refill(); d.have < 3 {
				return ErrTruncated
			}
		}
		meta[symbol] = uint8(d.bits & 7)
		d.drop(3)
	}
	if !build(d.meta[:], metaBits, meta[:], metaEntries[:]) {
		return ErrCorrupt
	}
	for i := 0; i < lits+dists; {
		if d.have < metaBits+7 {
			d.refill()
		}
		e := d.meta[d.bits&(1<<metaBits-1)]
		if e&special != 0 {
			return ErrCorrupt
		}
		n := uint(e & 0xff)
		if n > d.have {
			return ErrTruncated
		}
		symbol := e >> 16
		run, value, extra := 1, uint8(symbol), uint(0)
		switch rest := d.bits >> n; symbol {
		case 16:
			if i == 0 {
				return ErrCorrupt
			}
			run, value, extra = 3+int(rest&3), d.lengths[i-1], 2
		case 17:
			run, value, extra = 3+int(rest&7), 0, 3
		case 18:
			run, value, extra = 11+int(rest&127), 0, 7
		}
		if n += extra; n > d.have {
			return ErrTruncated
		}
		d.drop(n)
		if i+run > lits+dists {
			return ErrCorrupt
		}
		for range run {
			d.lengths[i] = value
			i++
		}
	}
	if !build(d.lit[:], litBits, d.lengths[:lits], litEntries[:]) ||
		!build(d.dist[:], distBits, d.lengths[lits:lits+dists], distEntries[:]) {
		return ErrCorrupt
	}
	return nil
}

// careful decodes symbol by symbol what fast leaves: the last bytes of the input. A match whose distance is incomplete
// is not used.
func (d *Decoder) careful(out []byte, op int) (int, error) {
	for len(out)-op >= Slack {
		d.refill()
		before := d.mark()
		e, err := d.symbol(d.lits[:], litBits)
		if err != nil {
			return op, err
		}
		if e&literal != 0 {
			out[op] = byte(e >> 16)
			op++
			continue
		}
		if e&special != 0 {
			d.endBlock()
			return op, nil
		}
		length := int(e)
		d.refill()
		if e, err = d.symbol(d.dists[:], distBits); err != nil {
			d.back(before)
			return op, err
		}
		distance := int(e)
		if distance > op-d.base {
			return op, ErrCorrupt
		}
		for range length {
			out[op] = out[op-distance]
			op++
		}
	}
	return op, nil
}

// symbol returns the entry of a literal or of the end of a block, or else a number: the length or the distance.
func (d *Decoder) symbol(table []uint32, root uint) (uint32, error) {
	e := table[d.bits&(1<<root-1)]
	used := uint(0)
	if e&(special|endOfBlock) == special {
		if e>>16 == 0 {
			return 0, ErrCorrupt
		}
		used = root
		e = table[uint64(e>>16)+d.bits>>root&(1<<(e>>8&63)-1)]
	}
	n := used + uint(e&0xff)
	if n > d.have {
		return 0, ErrTruncated
	}
	number := e >> 16
	if e&(literal|special) == 0 {
		code := used + uint(e>>8&63)
		number += uint32(d.bits & (1<<n - 1) >> code)
		e = number
	}
	d.drop(n)
	return e, nil
}
