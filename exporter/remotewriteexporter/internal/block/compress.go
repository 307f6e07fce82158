// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

const (
	minLevel = 1
	maxLevel = 4
	// window is how far back zstd looks, and what each encoder holds. A request of 50k samples is 2 to 3 MB raw, but laid
	// out so that what is alike is near: a window of all of it measured the same bytes and CPU, and costs the memory.
	window = 1 << 20
)

// zstdEncoders keeps idle encoders by level: each holds megabytes, so never more than there are processors.
var zstdEncoders = func() (free [maxLevel + 1]chan *zstd.Encoder) {
	for i := range free {
		free[i] = make(chan *zstd.Encoder, runtime.GOMAXPROCS(0))
	}
	return free
}()

// Compress appends raw, compressed as f says, to dst.
func Compress(dst []byte, f Format, raw []byte) ([]byte, error) {
	switch f.Compression {
	case promwrite.Identity:
		return append(dst, raw...), nil
	case promwrite.Snappy:
		start := len(dst)
		dst = slices.Grow(dst, s2.MaxEncodedLen(len(raw)))
		room := dst[start:cap(dst)]
		if f.Level > minLevel {
			return dst[:start+len(s2.EncodeSnappyBetter(room, raw))], nil
		}
		return dst[:start+len(s2.EncodeSnappy(room, raw))], nil
	case promwrite.Zstd:
		return compressZstd(dst, f.Level, raw)
	}
	return dst, fmt.Errorf("cannot compress as encoding %d: it is unknown", f.Compression)
}

func compressZstd(dst []byte, level int, raw []byte) ([]byte, error) {
	level = min(max(level, minLevel), maxLevel)
	var enc *zstd.Encoder
	select {
	case enc = <-zstdEncoders[level]:
	default:
		var err error
		enc, err = zstd.NewWriter(nil,
			zstd.WithEncoderLevel(zstd.EncoderLevel(level)),
			zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), // the block has a checksum, the network has TCP's
			zstd.WithWindowSize(window))
		if err != nil {
			return dst, fmt.Errorf("cannot make a zstd encoder: %w", err)
		}
	}
	dst = enc.EncodeAll(raw, dst)
	select {
	case zstdEncoders[level] <- enc:
	default: // as many idle as processors: this one goes
	}
	return dst, nil
}

// decompressors keeps idle ones, as zstdEncoders does.
var decompressors = make(chan *promwrite.Decompressor, runtime.GOMAXPROCS(0))

// Raw is the request before compression, in memory of its own.
func (b Block) Raw() ([]byte, error) {
	var d *promwrite.Decompressor
	select {
	case d = <-decompressors:
	default:
		var err error
		if d, err = promwrite.NewDecompressor(maxRaw); err != nil {
			return nil, err
		}
	}
	raw, err := d.Decompress(nil, b.Compression, b.body)
	select {
	case decompressors <- d:
	default:
	}
	return raw, err
}
