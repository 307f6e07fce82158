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
	// window is how far back zstd looks, and what each encoder holds. A request of 50k samples is 2 to 3 MB raw, but laid out
	// so that what is alike is near: a window of all of it measured the same bytes and CPU, and costs the memory.
	window = 1 << 20
)

// frameEncoders keeps idle encoders for what is told at the lowest level, and for 2.0: never more than there are processors.
var frameEncoders = make(chan *frame.Encoder, runtime.GOMAXPROCS(0))

// zstdEncoders keeps those for all else by level: each holds megabytes.
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

// CompressKnown is Compress for a request of which something is known beforehand. That is used up.
func CompressKnown(dst []byte, f Format, raw []byte, known frame.Known) ([]byte, error) {
	switch f.Compression {
	case promwrite.Identity:
		return append(dst, raw...), nil
	case promwrite.Snappy:
		if f.Version == promwrite.V2 && f.Level <= minLevel && mostly(&known, len(raw)) {
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
		if f.Level <= minLevel && (f.Version == promwrite.V2 || mostly(&known, len(raw))) {
			return compressFrame(dst, raw, known), nil
		}
		return compressZstd(dst, f.Level, raw)
	}
	return dst, fmt.Errorf("cannot compress as encoding %d: it is unknown", f.Compression)
}

// HearsEchoes says whether a format becomes smaller by echoes, rather than by runs: without a short way to repeat a distance. One
// without compression has the order of such a one.
func HearsEchoes(f Format) bool {
	return f.Version == promwrite.V2 && f.Compression != promwrite.Zstd && f.Level <= minLevel
}

// Reach is how far back a format can say that something was.
func Reach(f Format) int {
	if f.Compression == promwrite.Zstd {
		return frame.Window
	}
	return frame.SnappyWindow
}

// mostly says whether half of a request or more is told: in what is not, the encoders of others find more.
func mostly(known *frame.Known, size int) bool { return 2*known.Covered() >= size }

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

// compressFrame is for messages that mostly repeat the one before but for a few bytes.
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
	default: // as many idle as processors: this one goes
	}
	return dst
}

// snappyEncoders keeps idle encoders: never more than there are processors.
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
	default: // as many idle as processors: this one goes
	}
	return dst
}

// decompressors keeps idle ones by encoding: what reads snappy need not hold what zstd takes.
var decompressors = func() (free [promwrite.Identity + 1]chan *promwrite.Decompressor) {
	for i := range free {
		free[i] = make(chan *promwrite.Decompressor, runtime.GOMAXPROCS(0))
	}
	return free
}()

// Raw is the request before compression, in memory of its own.
func (b Block) Raw() ([]byte, error) {
	free := decompressors[min(b.Compression, promwrite.Identity)] // an unknown one is an error anyway
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
