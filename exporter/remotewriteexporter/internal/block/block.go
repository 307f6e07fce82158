// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package block holds finished Remote Write requests: a compressed body and the few facts that queue, retry and
// accounting need, so that nobody decodes a body to count it.
//
// A Block is immutable and may be shared between goroutines. Its form on disk is self-describing and has a
// checksum; Parse trusts no byte of it. Transcode and Split make new blocks from old ones, for a receiver that
// refused the format or the size.
package block

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

// Format is how a request is written. Level is zstd's, from 1 (fastest) to 4; 0 means 1. Snappy takes level 2 and
// above as leave to search longer for the same format.
type Format struct {
	Version     promwrite.Version
	Compression promwrite.Encoding
	Level       int
}

// Header says what is in a body.
type Header struct {
	Version     promwrite.Version
	Compression promwrite.Encoding
	Samples     int
	Histograms  int
	Exemplars   int
	Metadata    int   // entries of the metadata list of 1.0; 2.0 has it in its series
	MinTime     int64 // milliseconds; of samples and histograms
	MaxTime     int64
	RawSize     int // bytes before compression
	Shard       int
	Tenant      string
}

// A Block is one request.
type Block struct {
	Header

	body []byte
	lent *sharedBody // memory of the body if it is used again; nil if the body is the block's own
}

// New makes a block of a compressed body, which must not change from then on.
func New(h Header, body []byte) Block { return Block{Header: h, body: body} }

// Body is the compressed request, not to be written to.
func (b Block) Body() []byte { return b.body }

// The format on disk: magic, varints of the header in order, tenant, body length, body, xxh3 of all before it.
const (
	magic        = "gwb\x01"
	checksumSize = 8
	// maxRaw limits the decompressed size of a body: far above what an encoder makes, far below what the memory cannot
	// hold.
	maxRaw = 256 << 20
)

var (
	// ErrCorrupt is in the chain of every error of Parse.
	ErrCorrupt = errors.New("block is corrupt")

	errMagic    = errors.New("it does not begin like one")
	errTooShort = errors.New("it ends too early")
	errTrailing = errors.New("bytes follow its end")
	errChecksum = errors.New("its checksum does not fit")
	errField    = errors.New("a field is out of range")
)

// Size is how many bytes AppendTo appends, or a few more.
func (b Block) Size() int {
	return len(magic) + 12*binary.MaxVarintLen64 + len(b.Tenant) + len(b.body) + checksumSize
}

// AppendTo appends the form on disk.
func (b Block) AppendTo(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	for _, v := range [...]int{int(b.Version), int(b.Compression), b.Samples, b.Histograms, b.Exemplars, b.Metadata} {
		dst = binary.AppendUvarint(dst, uint64(v))
	}
	dst = binary.AppendVarint(dst, b.MinTime)
	dst = binary.AppendVarint(dst, b.MaxTime)
	dst = binary.AppendUvarint(dst, uint64(b.RawSize))
	dst = binary.AppendUvarint(dst, uint64(b.Shard))
	dst = binary.AppendUvarint(dst, uint64(len(b.Tenant)))
	dst = append(dst, b.Tenant...)
	dst = binary.AppendUvarint(dst, uint64(len(b.body)))
	dst = append(dst, b.body...)
	return binary.LittleEndian.AppendUint64(dst, xxh3.Hash(dst[start:]))
}

// Parse parses what AppendTo wrote; data must be exactly that. The block keeps data, which must not change.
func Parse(data []byte) (Block, error) {
	b, err := parse(data)
	if err != nil {
		return Block{}, fmt.Errorf("cannot read block of %d bytes: %w: %w", len(data), ErrCorrupt, err)
	}
	return b, nil
}

func parse(data []byte) (Block, error) {
	if len(data) < len(magic)+checksumSize {
		return Block{}, errTooShort
	}
	if string(data[:len(magic)]) != magic {
		return Block{}, errMagic
	}
	end := len(data) - checksumSize
	if xxh3.Hash(data[:end]) != binary.LittleEndian.Uint64(data[end:]) {
		return Block{}, errChecksum
	}
	r := reader{rest: data[len(magic):end]}
	b := Block{Header: r.header()}
	b.body = r.bytes()
	switch {
	case r.err != nil:
		return Block{}, r.err
	case len(r.rest) > 0:
		return Block{}, errTrailing
	}
	return b, nil
}

// Salvage parses the header of a block that Parse refuses, to report what was lost. It returns false if the header
// cannot be right either.
func Salvage(data []byte) (Header, bool) {
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return Header{}, false
	}
	r := reader{rest: data[len(magic):]}
	h := r.header()
	if r.err != nil || h.Samples+h.Histograms+h.Exemplars > h.RawSize {
		return Header{}, false
	}
	return h, true
}

// reader cuts off fields; after the first error it returns zeros.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) header() (h Header) {
	h.Version = promwrite.Version(r.number(uint64(promwrite.V2)))
	h.Compression = promwrite.Encoding(r.number(uint64(promwrite.Identity)))
	h.Samples = int(r.number(maxRaw))
	h.Histograms = int(r.number(maxRaw))
	h.Exemplars = int(r.number(maxRaw))
	h.Metadata = int(r.number(maxRaw))
	h.MinTime = r.time()
	h.MaxTime = r.time()
	h.RawSize = int(r.number(maxRaw))
	h.Shard = int(r.number(1 << 20))
	h.Tenant = string(r.bytes())
	if h.Version == 0 {
		r.fail(errField)
	}
	return h
}

func (r *reader) number(most uint64) uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail(errTooShort)
		return 0
	}
	if v > most {
		r.fail(errField)
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) time() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.fail(errTooShort)
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.number(maxRaw)
	if n > uint64(len(r.rest)) {
		r.fail(errTooShort)
		return nil
	}
	data := r.rest[:n:n]
	r.rest = r.rest[n:]
	return data
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}
