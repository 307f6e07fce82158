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

// Encoding is a content coding.
type Encoding int

// The codings, the preferred last.
const (
	Identity Encoding = iota
	Gzip
	Zstd
	encodings
)

// String is the coding's name in HTTP.
func (e Encoding) String() string { return [...]string{"identity", "gzip", "zstd"}[e] }

// best is the last coding that a target knows: all up to the one named, or all.
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

// negotiate picks the best coding that Accept-Encoding offers: zstd, gzip, identity, but none beyond the last known.
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

// coded is a page in one coding, open at its end so that a tail can follow.
type coded struct {
	body []byte
	// crc and size are of the plain page: gzip's trailer goes on from them.
	crc  uint32
	size uint32
}

// A gzip header without name or time, and an unknown system.
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// The standard library's, at the level that exporters use.
var deflaters = sync.Pool{New: func() any { return mustFlate(flate.DefaultCompression) }}

// A tail is compressed per scrape, so quickly.
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

// encode compresses a page, once and for all its scrapes.
func encode(e Encoding, page []byte) coded {
	switch e {
	case Gzip:
		var out bytes.Buffer
		out.Write(gzipHeader)
		w := deflaters.Get().(*flate.Writer)
		defer deflaters.Put(w)
		w.Reset(&out)
		// Flush ends the page on a byte boundary without ending the stream.
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

// appendTail appends the encoded tail, and with it ends the body: gzip goes on
// in the same stream, zstd adds a frame.
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

// appendDeflate ends a deflate stream: a stored block if that is small.
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
