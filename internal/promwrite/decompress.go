// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// ErrTooLarge matches the error for a body that decompresses to more than the limit.
var ErrTooLarge = errors.New("decoded size is over the limit")

// A Decompressor decompresses bodies up to a limit. Use one per goroutine; it starts none, so there is nothing to
// close.
type Decompressor struct {
	limit int
	zstd  *zstd.Decoder
}

// NewDecompressor makes a Decompressor that refuses bodies of more than limit decoded bytes.
func NewDecompressor(limit int) (*Decompressor, error) {
	if limit <= 0 {
		return nil, fmt.Errorf("cannot decompress into %d bytes: the limit must be positive", limit)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)))
	if err != nil {
		return nil, fmt.Errorf("cannot make a zstd decoder: %w", err)
	}
	return &Decompressor{limit: limit, zstd: decoder}, nil
}

// Size returns the size that a body claims to decompress to, or the limit if it makes no claim.
func (d *Decompressor) Size(encoding Encoding, src []byte) int {
	size := d.limit
	switch encoding {
	case Identity:
		size = len(src)
	case Snappy:
		if n, err := s2.DecodedLen(src); err == nil {
			size = n
		}
	case Zstd:
		size = zstdSize(src, d.limit)
	}
	return min(size, d.limit)
}

// Decompress decodes src into dst's memory, growing it as needed. The result is valid until dst is used again; for an
// uncompressed body it is src itself.
func (d *Decompressor) Decompress(dst []byte, encoding Encoding, src []byte) ([]byte, error) {
	switch encoding {
	case Identity:
		if len(src) > d.limit {
			return nil, d.tooLarge(encoding, src)
		}
		return src, nil
	case Snappy:
		// Snappy states its decoded size in advance, and s2 allocates that.
		size, err := s2.DecodedLen(src)
		if err != nil {
			return nil, d.corrupt(encoding, src, err)
		}
		if size > d.limit {
			return nil, d.tooLarge(encoding, src)
		}
		out, err := s2.Decode(dst[:cap(dst)], src)
		if err != nil {
			return nil, d.corrupt(encoding, src, err)
		}
		return out, nil
	case Zstd:
		out, err := d.zstd.DecodeAll(src, dst[:0])
		switch {
		case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
			return nil, d.tooLarge(encoding, src)
		case err != nil:
			return nil, d.corrupt(encoding, src, err)
		}
		return out, nil
	}
	return nil, fmt.Errorf("cannot decompress encoding %d: it is unknown", encoding)
}

func (d *Decompressor) corrupt(encoding Encoding, src []byte, err error) error {
	return fmt.Errorf("cannot decompress %d bytes of %s: %w", len(src), encoding, err)
}

func (d *Decompressor) tooLarge(encoding Encoding, src []byte) error {
	return fmt.Errorf("cannot decompress %d bytes of %s into %d: %w", len(src), encoding, d.limit, ErrTooLarge)
}
