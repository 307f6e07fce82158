// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/godwit-otel/godwit/internal/otlpstream/delta"
)

// Requests on a stream are similar: they repeat names and attributes. So their payloads are compressed as one zstd
// frame that lasts as long as the stream, with a flush after each, and repetitions become references. Before that,
// metrics are turned into deltas, which leave less to compress.

// Keep limits what either end of a stream keeps of packed payloads.
type Keep struct {
	// Window is the largest window of the zstd frame. 0 means FullWindow, and NoWindow that nothing is packed.
	Window int
	// History limits what deltas may refer to, in bytes as package delta counts them. 0 means no deltas.
	History int
}

// FullWindow is the default window of a frame, LeastWindow the smallest useful one.
const (
	NoWindow    = -1
	FullWindow  = 256 << 10
	LeastWindow = 4 << 10
)

// Memory returns what a server may need for a window, in addition to messages: as measured, less than three times its
// size.
func (k Keep) Memory() int {
	if k.Window == NoWindow {
		return 0
	}
	return 3*k.window() + 16<<10 + k.History
}

// window returns a size that zstd accepts: a power of two.
func (k Keep) window() int {
	if k.Window <= 0 || k.Window >= FullWindow {
		return FullWindow
	}
	return max(1<<(bits.Len(uint(k.Window))-1), zstd.MinWindowSize)
}

// Packer packs the payloads of one stream. It is not safe for concurrent use.
type Packer struct {
	encoder *zstd.Encoder
	deltas  *delta.Encoder // nil if deltas are not used
	out     bytes.Buffer
	form    []byte
}

// NewPacker returns a packer for a new stream, without deltas.
func NewPacker() *Packer { return Keep{}.NewPacker() }

// NewPacker returns a packer for a new stream that keeps no more than k.
func (k Keep) NewPacker() *Packer {
	p := &Packer{}
	var err error
	p.encoder, err = zstd.NewWriter(&p.out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(k.window()),
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // a window is a power of two within zstd's bounds
	}
	if k.History > 0 {
		p.deltas = delta.NewEncoder(k.History)
	}
	return p
}

// Pack packs the payload of the stream's next request. The packed payload is the request's own.
func (p *Packer) Pack(r *Request) {
	if len(r.Data) == 0 {
		return
	}
	data := r.Data
	if p.deltas != nil {
		if form, ok := p.deltas.Append(p.form[:0], data); ok {
			data, r.Delta = form, uint64(len(form))
			if p.form = form; cap(form) > mostSpare {
				p.form = nil
			}
		}
	}
	p.out.Reset()
	_, _ = p.encoder.Write(data) // neither fails: it goes to memory
	_ = p.encoder.Flush()
	r.Packed, r.Data, r.Memory = uint64(len(r.Data)), bytes.Clone(p.out.Bytes()), nil
	if p.out.Cap() > mostSpare {
		p.out = bytes.Buffer{}
	}
}

// HashResource returns a hash of the resource that a payload of metrics is about, or of the first one. It differs from
// process to process.
func HashResource(payload []byte) uint64 { return delta.HashResource(payload) }

// mostSpare is the largest buffer that is kept for the next payload: one huge request must not hold memory for ever.
const mostSpare = 1 << 20

// Unpacker unpacks the payloads of one stream, in the order they were packed in. It is not safe for concurrent use.
type Unpacker struct {
	limit   int
	keep    Keep
	decoder *zstd.Decoder
	deltas  *delta.Decoder
	in      feed
}

// room is memory to unpack into. Streams share it, so that silent ones hold none.
type room struct{ data, form []byte }

var rooms = sync.Pool{New: func() any { return new(room) }}

// NewUnpacker returns an unpacker for a new stream, for payloads of at most limit bytes. It takes no memory until there
// is one.
func NewUnpacker(limit int) *Unpacker { return Keep{}.NewUnpacker(limit) }

// NewUnpacker returns an unpacker for a new stream that keeps no more than k.
func (k Keep) NewUnpacker(limit int) *Unpacker { return &Unpacker{limit: limit, keep: k} }

// Used reports whether the stream has packed payloads: then none may be skipped.
func (u *Unpacker) Used() bool { return u.decoder != nil }

// Unpack replaces a packed payload by what it holds, in OTLP form, and leaves other payloads alone. After an error the
// stream is lost.
func (u *Unpacker) Unpack(r *Request) error {
	if r.Packed == 0 {
		return nil
	}
	if u.keep.Window == NoWindow {
		return fmt.Errorf("cannot unpack %d bytes: nobody has asked for packed payloads", len(r.Data))
	}
	if max(r.Packed, r.Delta) > uint64(u.limit) {
		return fmt.Errorf("cannot unpack %d bytes to %d: %w", len(r.Data), max(r.Packed, r.Delta), ErrInflated)
	}
	if r.Delta > 0 && u.keep.History == 0 {
		return fmt.Errorf("cannot unpack %d bytes: nobody has asked for deltas", len(r.Data))
	}
	if u.decoder == nil {
		var err error
		u.decoder, err = zstd.NewReader(&u.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(uint64(u.keep.window())))
		if err != nil {
			return fmt.Errorf("cannot make a zstd decoder: %w", err)
		}
	}
	to := rooms.Get().(*room)
	defer rooms.Put(to)
	data := to.data[:0]
	var err error
	if r.Delta == 0 {
		data, err = u.inflate(data, r.Data, r.Packed)
		if err == nil {
			err = retag(data, streamTag, otlpTag)
		}
	} else {
		data, err = u.restore(data, to, r)
	}
	if err != nil {
		return err
	}
	r.Data, r.Packed, r.Delta = data, 0, 0
	if r.Buffer, to.data = data, r.Buffer; cap(to.data) > mostSpare {
		to.data = nil
	}
	return nil
}

// inflate appends the next size bytes of the frame, which must be all that a message contains.
func (u *Unpacker) inflate(dst, packed []byte, size uint64) ([]byte, error) {
	u.in.rest = packed
	dst = slices.Grow(dst, int(size))[:size]
	if _, err := io.ReadFull(u.decoder, dst); err != nil {
		return dst, fmt.Errorf("cannot unpack %d bytes to %d: %w", len(packed), size, err)
	}
	if len(u.in.rest) > 0 {
		return dst, fmt.Errorf("cannot unpack %d bytes to %d: %d bytes are left", len(packed), size, len(u.in.rest))
	}
	return dst, nil
}

// restore makes a payload of a delta.
func (u *Unpacker) restore(dst []byte, by *room, r *Request) ([]byte, error) {
	form, err := u.inflate(by.form[:0], r.Data, r.Delta)
	if by.form = form; cap(form) > mostSpare {
		by.form = nil
	}
	if err != nil {
		return dst, err
	}
	if u.deltas == nil {
		u.deltas = delta.NewDecoder(u.keep.History)
	}
	return u.deltas.Append(slices.Grow(dst, int(r.Packed)), form, int(r.Packed), otlpTag)
}

// Close frees the decoder.
func (u *Unpacker) Close() {
	if u.decoder != nil {
		u.decoder.Close()
	}
}

// feed is the source that a decoder reads from: one message at a time.
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
