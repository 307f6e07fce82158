// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block/frame"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

const (
	minLevel = 1
	maxLevel = 4
	// window is how far back zstd looks, and the memory that each encoder holds. A request of 50k samples is 2 to 3 MB
	// raw, but similar messages are close together: a window of the whole request gave the same size and CPU time, and
	// costs more memory.
	window = 1 << 20
)

// frameEncoders are idle encoders for requests with hints at the lowest level, and for 2.0: at most one per processor.
var frameEncoders = make(chan *frame.Encoder, runtime.GOMAXPROCS(0))

// zstdEncoders are idle encoders for all other requests, by level: each holds megabytes.
var zstdEncoders = func() (free [maxLevel + 1]chan *zstd.Encoder) {
	for i := range free {
		free[i] = make(chan *zstd.Encoder, runtime.GOMAXPROCS(0))
	}
	return free
}()

// Compress appends raw, compressed as f says, to dst.
func Compress(dst []byte, f Format, raw []byte) ([]byte, error) {
	return CompressKnown(dst, f, raw, frame.Known{})
}

// CompressKnown is Compress with hints about the request, which it consumes.
func CompressKnown(dst []byte, f Format, raw []byte, known frame.Known) ([]byte, error) {
	switch f.Compression {
	case promwrite.Identity:
		return append(dst, raw...), nil
	case promwrite.Snappy:
		if f.Version == promwrite.V2 && f.Level <= minLevel && isMostlyHinted(&known, len(raw)) {
			return compressSnappy(dst, raw, known), nil
		}
		start := len(dst)
		dst = slices.Grow(dst, s2.MaxEncodedLen(len(raw)))
		room := dst[start:cap(dst)]
		if f.Level > minLevel {
			return dst[:start+len(s2.EncodeSnappyBetter(room, raw))], nil
		}
		return dst[:start+len(s2.EncodeSnappy(room, raw))], nil
	case promwrite.Zstd:
		if f.Level <= minLevel && (f.Version == promwrite.V2 || isMostlyHinted(&known, len(raw))) {
			return compressFrame(dst, raw, known), nil
		}
		return compressZstd(dst, f.Level, raw)
	}
	return dst, fmt.Errorf("cannot compress as encoding %d: it is unknown", f.Compression)
}

// UsesEchoes reports whether a format compresses better with echoes than with runs, because it has no short way to
// repeat a distance. Formats without compression are ordered as if they did.
func UsesEchoes(f Format) bool {
	return f.Version == promwrite.V2 && f.Compression != promwrite.Zstd && f.Level <= minLevel
}

// Reach is how far back a format can refer.
func Reach(f Format) int {
	if f.Compression == promwrite.Zstd {
		return frame.Window
	}
	return frame.SnappyWindow
}

// isMostlyHinted reports whether hints cover at least half of a request: other encoders find more in the rest.
func isMostlyHinted(known *frame.Known, size int) bool { return 2*known.Covered() >= size }

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
			zstd.WithEncoderCRC(false), // blocks have a checksum, and so has TCP
			zstd.WithWindowSize(window))
		if err != nil {
			return dst, fmt.Errorf("cannot make a zstd encoder: %w", err)
		}
	}
	dst = enc.EncodeAll(raw, dst)
	select {
	case zstdEncoders[level] <- enc:
	default: // enough encoders are idle
	}
	return dst, nil
}

// compressFrame is for messages that differ from the one before in a few bytes only.
func compressFrame(dst, raw []byte, known frame.Known) []byte {
	var enc *frame.Encoder
	select {
	case enc = <-frameEncoders:
	default:
		enc = &frame.Encoder{}
	}
	dst = enc.Append(dst, raw, known)
	select {
	case frameEncoders <- enc:
	default: // enough encoders are idle
	}
	return dst
}

// snappyEncoders are idle encoders: at most one per processor.
var snappyEncoders = make(chan *frame.Snappy, runtime.GOMAXPROCS(0))

// compressSnappy is compressFrame for snappy.
func compressSnappy(dst, raw []byte, known frame.Known) []byte {
	var enc *frame.Snappy
	select {
	case enc = <-snappyEncoders:
	default:
		enc = &frame.Snappy{}
	}
	dst = enc.Append(dst, raw, known)
	select {
	case snappyEncoders <- enc:
	default: // enough encoders are idle
	}
	return dst
}

// decompressors are idle ones by encoding: one for snappy need not hold the memory of one for zstd.
var decompressors = func() (free [promwrite.Identity + 1]chan *promwrite.Decompressor) {
	for i := range free {
		free[i] = make(chan *promwrite.Decompressor, runtime.GOMAXPROCS(0))
	}
	return free
}()

// Raw returns the request before compression, in memory of its own.
func (b Block) Raw() ([]byte, error) {
	free := decompressors[min(b.Compression, promwrite.Identity)] // an unknown encoding gives an error anyway
	var d *promwrite.Decompressor
	select {
	case d = <-free:
	default:
		var err error
		if d, err = promwrite.NewDecompressor(maxRaw); err != nil {
			return nil, err
		}
	}
	raw, err := d.Decompress(nil, b.Compression, b.body)
	select {
	case free <- d:
	default:
	}
	return raw, err
}
