// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Over WebSocket a message is preceded by one byte: its compression. An empty frame is the half-close that WebSocket
// lacks.

// Compression of a message.
type Compression uint8

// The compressions a frame can name.
const (
	NoCompression Compression = iota
	Gzip
	Zstd
)

// ErrInflated is in the chain of an error about a message that would be larger than the limit.
var ErrInflated = errors.New("larger than the limit once decompressed")

// AppendFrame appends a frame with a message given in parts.
func (c Compression) AppendFrame(dst []byte, parts ...[]byte) ([]byte, error) {
	dst = append(dst, byte(c))
	switch c {
	case NoCompression:
		for _, part := range parts {
			dst = append(dst, part...)
		}
	case Gzip:
		buf := bytes.NewBuffer(dst)
		w := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(w)
		w.Reset(buf)
		for _, part := range parts {
			if _, err := w.Write(part); err != nil {
				return dst, fmt.Errorf("cannot compress a frame: %w", err)
			}
		}
		if err := w.Close(); err != nil {
			return dst, fmt.Errorf("cannot compress a frame: %w", err)
		}
		dst = buf.Bytes()
	case Zstd:
		if len(parts) == 1 {
			return encoder().EncodeAll(parts[0], dst), nil
		}
		whole := wholes.Get().(*[]byte)
		defer wholes.Put(whole)
		*whole = (*whole)[:0]
		for _, part := range parts {
			*whole = append(*whole, part...)
		}
		return encoder().EncodeAll(*whole, dst), nil
	default:
		return dst, fmt.Errorf("cannot compress a frame: unknown compression %d", c)
	}
	return dst, nil
}

// Frames decodes frames whose messages are within a limit. It is safe for concurrent use.
type Frames struct {
	limit int
	zstd  *zstd.Decoder
}

// NewFrames returns a decoder of frames whose messages have at most limit bytes.
func NewFrames(limit int) (*Frames, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(uint64(max(1, limit))),
		zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderConcurrency(0))
	if err != nil {
		return nil, fmt.Errorf("cannot make a zstd decoder: %w", err)
	}
	return &Frames{limit: limit, zstd: decoder}, nil
}

// Limit returns the largest size of a message in bytes.
func (f *Frames) Limit() int { return f.limit }

// Close frees the decoder.
func (f *Frames) Close() { f.zstd.Close() }

// Message returns the message of a frame. If it is not compressed it is the frame's own tail, otherwise it is appended
// to dst.
func (f *Frames) Message(dst, frame []byte) ([]byte, error) {
	if len(frame) == 0 {
		return nil, errors.New("cannot read a frame: it is empty")
	}
	var err error
	body := frame[1:]
	switch c := Compression(frame[0]); c {
	case NoCompression:
		dst = body
	case Gzip:
		dst, err = gunzip(dst, body, f.limit)
	case Zstd:
		dst, err = f.Inflate(dst, body)
	default:
		err = fmt.Errorf("unknown compression %d", c)
	}
	if err == nil && len(dst) > f.limit {
		err = ErrInflated
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read a frame of %d bytes: %w", len(frame), err)
	}
	return dst, nil
}

// Inflate appends what was compressed with zstd, up to the limit. A frame names the window that its decoder needs, and may name any: a decoder of
// streams takes that memory before it has read a byte, so a few bytes could cost half a GiB. Here memory is taken for what comes out.
func (f *Frames) Inflate(dst, body []byte) ([]byte, error) {
	inflated, err := f.zstd.DecodeAll(body, dst)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		inflated, err = f.withinRoom(dst, body)
	}
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || err == nil && len(inflated)-len(dst) > f.limit {
		err = ErrInflated
	}
	return inflated, err
}

// wide decodes frames with any window, and writes no more than there is room for.
var wide = sync.OnceValue(func() *zstd.Decoder {
	decoder, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderConcurrency(0))
	if err != nil {
		panic(err) // the options are constants
	}
	return decoder
})

// withinRoom is Inflate for frames whose window is larger than the limit. It is not known how large the message is, so more and more room
// is tried.
func (f *Frames) withinRoom(dst, body []byte) ([]byte, error) {
	const first, more = 64 << 10, 4
	for room := first; ; room *= more {
		room = min(room, f.limit+1)
		inflated, err := wide().DecodeAll(body, slices.Grow(slices.Clip(dst), room))
		if !errors.Is(err, zstd.ErrDecoderSizeExceeded) || room > f.limit {
			return inflated, err
		}
	}
}

func gunzip(dst, body []byte, limit int) ([]byte, error) {
	r, _ := gzipReaders.Get().(*gzip.Reader)
	if r == nil {
		r = new(gzip.Reader)
	}
	defer gzipReaders.Put(r)
	if err := r.Reset(bytes.NewReader(body)); err != nil {
		return nil, err
	}
	buf := bytes.NewBuffer(dst)
	if _, err := io.Copy(buf, io.LimitReader(r, int64(limit)+1)); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

var (
	gzipReaders sync.Pool
	gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}
	// wholes are buffers for messages given in parts.
	wholes = sync.Pool{New: func() any { return new([]byte) }}

	// The window is no larger than most messages: larger ones compress a little worse.
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(512<<10))
		if err != nil {
			panic(err) // the options are constants
		}
		return e
	})
)
