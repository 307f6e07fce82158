// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package farm

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Encoding is a content coding of HTTP.
type Encoding int

// The codings, in order of preference; the last one is preferred.
const (
	Identity Encoding = iota
	Gzip
	Zstd
	encodings
)

// String returns the coding's name in HTTP.
func (e Encoding) String() string { return [...]string{"identity", "gzip", "zstd"}[e] }

// best returns the last coding that a target supports: the named one, or the last of all if name is empty.
func best(name string) (Encoding, error) {
	for e := range encodings {
		if name == e.String() {
			return e, nil
		}
	}
	if name == "" {
		return encodings - 1, nil
	}
	return 0, fmt.Errorf("cannot serve bodies in %q: say identity, gzip or zstd", name)
}

// negotiate returns the best coding of Accept-Encoding, up to the last one that the target supports.
func negotiate(acceptEncoding string, last Encoding) Encoding {
	best := Identity
	for offer := range strings.SplitSeq(acceptEncoding, ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(offer), ";")
		if strings.ReplaceAll(q, " ", "") == "q=0" {
			continue
		}
		for e := Gzip; e <= last; e++ {
			if strings.TrimSpace(name) == e.String() {
				best = max(best, e)
			}
		}
	}
	return best
}

// coded is an encoded page without its end, so that a tail can be appended.
type coded struct {
	body []byte
	// crc and size are of the plain page; gzip's trailer continues from them.
	crc  uint32
	size uint32
}

// A gzip header without name or time, and an unknown system.
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// As in the standard library, at the level that exporters use.
var deflaters = sync.Pool{New: func() any { return mustFlate(flate.DefaultCompression) }}

// The tail is compressed for each scrape, so at the fastest level.
var tailDeflaters = sync.Pool{New: func() any { return mustFlate(flate.BestSpeed) }}

func mustFlate(level int) *flate.Writer {
	w, err := flate.NewWriter(nil, level)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}

var zstdEncoder = func() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return w
}()

// encode compresses a page once for all its scrapes.
func encode(e Encoding, page []byte) coded {
	switch e {
	case Gzip:
		var out bytes.Buffer
		out.Write(gzipHeader)
		w := deflaters.Get().(*flate.Writer)
		defer deflaters.Put(w)
		w.Reset(&out)
		// Flush ends on a byte boundary without ending the stream.
		if _, err := w.Write(page); err != nil {
			panic(fmt.Sprintf("cannot write to memory: %v", err))
		}
		if err := w.Flush(); err != nil {
			panic(fmt.Sprintf("cannot write to memory: %v", err))
		}
		return coded{body: bytes.Clone(out.Bytes()), crc: crc32.ChecksumIEEE(page), size: uint32(len(page))}
	case Zstd:
		return coded{body: bytes.Clone(zstdEncoder.EncodeAll(page, nil))}
	default:
		return coded{body: page}
	}
}

// appendTail appends the encoded tail and ends the body: gzip continues the stream, zstd adds a frame.
func (c *coded) appendTail(dst []byte, e Encoding, tail []byte) []byte {
	switch e {
	case Gzip:
		dst = appendDeflate(dst, tail)
		dst = binary.LittleEndian.AppendUint32(dst, crc32.Update(c.crc, crc32.IEEETable, tail))
		return binary.LittleEndian.AppendUint32(dst, c.size+uint32(len(tail)))
	case Zstd:
		return zstdEncoder.EncodeAll(tail, dst)
	default:
		return append(dst, tail...)
	}
}

// appendDeflate ends a deflate stream, with a stored block if the tail is small.
func appendDeflate(dst, tail []byte) []byte {
	if n := len(tail); n < 512 {
		dst = append(dst, 1, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
		return append(dst, tail...)
	}
	out := bytes.NewBuffer(dst)
	w := tailDeflaters.Get().(*flate.Writer)
	defer tailDeflaters.Put(w)
	w.Reset(out)
	if _, err := w.Write(tail); err != nil {
		panic(fmt.Sprintf("cannot write to memory: %v", err))
	}
	if err := w.Close(); err != nil {
		panic(fmt.Sprintf("cannot write to memory: %v", err))
	}
	return out.Bytes()
}
