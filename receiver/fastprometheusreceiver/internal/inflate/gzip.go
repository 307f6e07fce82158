// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inflate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
)

// Errors of the format around the deflate stream.
var (
	ErrHeader   = errors.New("gzip: invalid header")
	ErrChecksum = errors.New("gzip: invalid checksum")
)

const (
	// mostRatio is the most bytes that one byte of deflate can yield: two bits give a match of 258 bytes.
	mostRatio = 1032
	headerLen = 10
	footerLen = 8
	// leastGrown is the first size of a buffer when the output's size is not known.
	leastGrown = 4 << 10
)

// A gzip header's flags, from RFC 1952.
const (
	flagHeaderSum = 1 << 1
	flagExtra     = 1 << 2
	flagName      = 1 << 3
	flagComment   = 1 << 4
)

// Inflate appends the deflate stream at the beginning of src to dst, and returns what follows the stream. dst grows as
// needed, to at most limit+Slack bytes of output; more output than limit is ErrLimit.
func (d *Decoder) Inflate(dst, src []byte, limit int) (out, rest []byte, err error) {
	d.src = src
	defer d.release()
	d.start(0, len(dst))
	g := growing{buf: dst, begin: len(dst), limit: limit, most: 4 * len(src)}
	if err := d.whole(&g); err != nil {
		return g.buf, nil, err
	}
	return g.buf, src[d.pos:], nil
}

// Gunzip appends the content of all gzip members in src to dst, under the same terms as Inflate. Their checksums and
// sizes are verified. Nothing but members may follow.
func (d *Decoder) Gunzip(dst, src []byte, limit int) ([]byte, error) {
	d.src = src
	defer d.release()
	g := growing{buf: dst, begin: len(dst), limit: limit, most: min(most(len(src)), max(SizeHint(src), leastGrown))}
	for pos := 0; ; {
		stream, err := header(src, pos)
		if err != nil {
			return g.buf, err
		}
		begin := len(g.buf)
		d.start(stream, begin)
		if err := d.whole(&g); err != nil {
			return g.buf, err
		}
		member := g.buf[begin:]
		pos, err = footer(src, d.pos, crc32.ChecksumIEEE(member), uint32(len(member)))
		if err != nil || pos == len(src) {
			return g.buf, err
		}
	}
}

// growing is an output that is held as a whole.
type growing struct {
	buf          []byte
	begin, limit int
	most         int // size to allocate at first
}

// whole runs d to the end of its stream.
func (d *Decoder) whole(g *growing) error {
	for {
		op, err := d.run(g.buf[:cap(g.buf)], len(g.buf))
		if err != nil {
			return err
		}
		g.buf = g.buf[:op]
		if op-g.begin > g.limit {
			return ErrLimit
		}
		if d.phase == finished {
			return nil
		}
		g.grow()
	}
}

// grow allocates the expected size at first, and twice as much later; never more than the limit.
func (g *growing) grow() {
	held := len(g.buf) - g.begin
	want := min(max(g.most, 2*held, leastGrown), g.limit)
	if size := g.begin + want + Slack; size > cap(g.buf) {
		grown := make([]byte, len(g.buf), size)
		copy(grown, g.buf)
		g.buf = grown
	}
}

// Stream decodes all gzip members in src a window at a time: it yields chunks of buf, each valid until yield returns.
// It returns how many bytes it yielded. Output beyond limit is ErrLimit; an error of yield ends it. len(buf) is at
// least MinWindow.
func (d *Decoder) Stream(buf, src []byte, limit int64, yield func(chunk []byte) error) (int64, error) {
	m := members{decoder: d}
	defer d.release()
	_, err := m.decode(buf, src, true, limit, yield)
	return m.total, err
}

// MinWindow is the least buffer of Stream.
const MinWindow = 2 * window

// SizeHint is the size that the last gzip member in src claims to have, within what src could contain. With several
// members, or with lies, it is wrong: use it only to choose the size of a buffer.
func SizeHint(src []byte) int {
	if len(src) < headerLen+footerLen {
		return 0
	}
	return min(int(binary.LittleEndian.Uint32(src[len(src)-4:])), most(len(src)))
}

func most(n int) int {
	if n > math.MaxInt/mostRatio {
		return math.MaxInt
	}
	return n * mostRatio
}

// release releases the input.
func (d *Decoder) release() { d.src = nil }

// header returns where the member that begins at src[pos] has its deflate stream.
func header(src []byte, pos int) (int, error) {
	begin := pos
	if len(src)-pos < headerLen {
		return 0, short(src[pos:])
	}
	if src[pos] != 0x1f || src[pos+1] != 0x8b || src[pos+2] != 8 {
		return 0, ErrHeader
	}
	flags := src[pos+3]
	pos += headerLen
	if flags&flagExtra != 0 {
		if len(src)-pos < 2 {
			return 0, ErrTruncated
		}
		pos += 2 + int(binary.LittleEndian.Uint16(src[pos:]))
	}
	for _, flag := range []byte{flagName, flagComment} {
		if flags&flag == 0 {
			continue
		}
		if pos > len(src) {
			return 0, ErrTruncated
		}
		n := bytes.IndexByte(src[pos:], 0)
		if n < 0 {
			return 0, ErrTruncated
		}
		pos += n + 1
	}
	if flags&flagHeaderSum != 0 {
		if pos+2 > len(src) {
			return 0, ErrTruncated
		}
		if binary.LittleEndian.Uint16(src[pos:]) != uint16(crc32.ChecksumIEEE(src[begin:pos])) {
			return 0, ErrHeader
		}
		pos += 2
	}
	if pos > len(src) {
		return 0, ErrTruncated
	}
	return pos, nil
}

// short distinguishes the beginning of a header from data that is none.
func short(b []byte) error {
	if magic := []byte{0x1f, 0x8b, 8}; bytes.HasPrefix(magic, b[:min(len(b), len(magic))]) {
		return ErrTruncated
	}
	return ErrHeader
}

// footer verifies the end of a member at src[pos:] and returns where the next one begins.
func footer(src []byte, pos int, sum, size uint32) (int, error) {
	if len(src)-pos < footerLen {
		return 0, ErrTruncated
	}
	if binary.LittleEndian.Uint32(src[pos:]) != sum || binary.LittleEndian.Uint32(src[pos+4:]) != size {
		return 0, ErrChecksum
	}
	return pos + footerLen, nil
}
