// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"errors"
	"fmt"
	"hash/crc32"
)

// maxHeader limits the header of a gzip member that comes in parts, which is held until its end is there. Only an
// absurdly long comment or name makes one longer.
const maxHeader = 128 << 10

// Parts decodes gzip members that come in parts. In between it holds the last 32 KiB of output and a few bytes of
// input, whatever the size of the whole. Its zero value is ready.
type Parts struct {
	decoder Decoder
	members members
	tail    []byte       // of the input; needs what follows to be decoded
	history [window]byte // the end of the output, as far as there is any
}

// Reset begins another page.
func (p *Parts) Reset() {
	p.members = members{}
	p.tail = p.tail[:0]
}

// Decode decodes the next part of the input under the same terms as Stream; last says that no other part follows. It
// returns how many bytes all parts have yielded so far. After an error, only Reset may be called.
//
// The part is appended in *scratch to what is left of the one before; *scratch grows as needed.
func (p *Parts) Decode(buf []byte, scratch *[]byte, part []byte, last bool, limit int64, yield func(chunk []byte) error) (int64, error) {
	m := &p.members
	m.decoder = &p.decoder
	defer p.decoder.release()
	src := part
	if len(p.tail) > 0 {
		*scratch = append(append((*scratch)[:0], p.tail...), part...)
		src = *scratch
	}
	if len(buf) >= MinWindow {
		copy(buf, p.history[:m.op])
	}
	used, err := m.decode(buf, src, last, limit, yield)
	if err != nil {
		return m.total, err
	}
	m.keep(buf)
	copy(p.history[:], buf[:m.op])
	p.tail = append(p.tail[:0], src[used:]...)
	return m.total, nil
}

// stage is what a gzip file has next.
type stage uint8

const (
	memberHeader stage = iota
	memberStream
	memberFooter
)

// members are the state of decoding gzip members between windows of output and parts of input.
type members struct {
	decoder *Decoder
	stage   stage
	any     bool // there was a member
	op      int  // how much output is in the buffer
	sum     uint32
	size    uint32
	total   int64 // of all members
}

// decode decodes src, at the beginning of which is what the last call did not use, and returns how much of src it used.
func (m *members) decode(buf, src []byte, last bool, limit int64, yield func(chunk []byte) error) (int, error) {
	if len(buf) < MinWindow {
		return 0, fmt.Errorf("cannot decode into a window of %d bytes: it takes %d", len(buf), MinWindow)
	}
	d := m.decoder
	d.src = src
	d.pos = 0
	for pos := 0; ; {
		var err error
		next, starved := pos, false
		switch m.stage {
		case memberHeader:
			if pos == len(src) && (m.any || !last) {
				return pos, nil
			}
			if next, err = header(src, pos); err == nil {
				d.start(next, 0)
				m.stage, m.any, m.op, m.sum, m.size = memberStream, true, 0, 0, 0
			}
			starved = errors.Is(err, ErrTruncated)
			if starved && len(src)-pos > maxHeader && !last {
				return pos, ErrHeader
			}
		case memberStream:
			if starved, err = m.stream(buf, limit, yield); starved {
				d.pause()
			}
			next = d.pos
		case memberFooter:
			if next, err = footer(src, pos, m.sum, m.size); err == nil {
				m.stage = memberHeader
			}
			starved = errors.Is(err, ErrTruncated)
		}
		switch {
		case starved && last:
			return pos, ErrTruncated
		case starved && m.stage == memberStream:
			return next, nil
		case starved:
			return pos, nil
		case err != nil:
			return pos, err
		}
		pos = next
	}
}

// stream decodes a member until it ends, or until it is starved of input.
func (m *members) stream(buf []byte, limit int64, yield func(chunk []byte) error) (starved bool, _ error) {
	d := m.decoder
	for !starved && d.phase != finished {
		m.keep(buf)
		begin := m.op
		op, err := d.run(buf, m.op)
		if starved = errors.Is(err, ErrTruncated); err != nil && !starved {
			return false, err
		}
		m.op = op
		chunk := buf[begin:op]
		m.total += int64(len(chunk))
		if m.total > limit {
			return false, ErrLimit
		}
		m.sum = crc32.Update(m.sum, crc32.IEEETable, chunk)
		m.size += uint32(len(chunk))
		if len(chunk) > 0 {
			if err := yield(chunk); err != nil {
				return false, err
			}
		}
	}
	if !starved {
		m.stage = memberFooter
	}
	return starved, nil
}

// keep leaves a window of the output in the buffer.
func (m *members) keep(buf []byte) {
	if moved := m.op - window; moved > 0 {
		copy(buf, buf[moved:m.op])
		m.decoder.base = max(m.decoder.base-moved, 0)
		m.op = window
	}
}
