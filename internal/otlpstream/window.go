// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// Requests on a stream resemble each other: the names and attributes of one are those of the last. So their payloads
// are compressed as one zstd frame that lasts as long as the stream, with a flush after each, and what one has said
// the next only points to. The window is what either end keeps of it.
const window = 256 << 10

// Packer packs the payloads of one stream. It is not safe for concurrent use.
type Packer struct {
	encoder *zstd.Encoder
	out     bytes.Buffer
}

// NewPacker makes a packer for a new stream.
func NewPacker() *Packer {
	p := &Packer{}
	var err error
	p.encoder, err = zstd.NewWriter(&p.out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(window),
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return p
}

// Pack packs the payload of the stream's next request. The packed payload is the request's own.
func (p *Packer) Pack(r *Request) {
	if len(r.Data) == 0 {
		return
	}
	p.out.Reset()
	_, _ = p.encoder.Write(r.Data) // neither fails: it goes to memory
	_ = p.encoder.Flush()
	r.Packed, r.Data, r.Memory = uint64(len(r.Data)), bytes.Clone(p.out.Bytes()), nil
}

// Unpacker unpacks the payloads of one stream, in the order they were packed in. It is not safe for concurrent use.
type Unpacker struct {
	limit   int
	decoder *zstd.Decoder
	in      feed
	spare   []byte // of the last request's buffer
}

// NewUnpacker makes an unpacker for a new stream, of payloads that have at most limit bytes. It takes no memory until
// there is one.
func NewUnpacker(limit int) *Unpacker { return &Unpacker{limit: limit} }

// Used tells whether the stream has packed payloads: then none may be skipped.
func (u *Unpacker) Used() bool { return u.decoder != nil }

// Unpack replaces a packed payload by what it holds, in OTLP form, and leaves other payloads alone. After an error the
// stream is lost.
func (u *Unpacker) Unpack(r *Request) error {
	if r.Packed == 0 {
		return nil
	}
	if r.Packed > uint64(u.limit) {
		return fmt.Errorf("cannot unpack %d bytes to %d: %w", len(r.Data), r.Packed, errTooLarge)
	}
	if u.decoder == nil {
		var err error
		u.decoder, err = zstd.NewReader(&u.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(window))
		if err != nil {
			return fmt.Errorf("cannot make a zstd decoder: %w", err)
		}
	}
	u.in.rest = r.Data
	data := slices.Grow(u.spare[:0], int(r.Packed))[:r.Packed]
	if _, err := io.ReadFull(u.decoder, data); err != nil {
		return fmt.Errorf("cannot unpack %d bytes to %d: %w", len(r.Data), r.Packed, err)
	}
	if len(u.in.rest) > 0 {
		return fmt.Errorf("cannot unpack %d bytes to %d: %d bytes are left", len(r.Data), r.Packed, len(u.in.rest))
	}
	r.Data, r.Packed = data, 0
	r.Buffer, u.spare = data, r.Buffer
	return retag(data, streamTag, otlpTag)
}

// Close frees the decoder.
func (u *Unpacker) Close() {
	if u.decoder != nil {
		u.decoder.Close()
	}
}

// feed is what a decoder reads from: one message at a time.
type feed struct{ rest []byte }

var errStarved = errors.New("the message has less than it says")

func (f *feed) Read(b []byte) (int, error) {
	if len(f.rest) == 0 {
		return 0, errStarved
	}
	n := copy(b, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}
