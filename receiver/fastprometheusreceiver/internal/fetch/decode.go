// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/inflate"
)

// DefaultLimit limits a page if nothing else does: a few compressed megabytes could keep a decoder busy for hours.
const DefaultLimit = 1 << 30

const (
	// large is the size from which on a page is decoded a piece at a time, instead of being held as a whole.
	large = 2 << 20
	// largeGzip is the compressed size from which on gzip is decoded in pieces: that costs no more there, and a decoder
	// keeps the memory it has used.
	largeGzip = 512 << 10
	// piece is the size of such a piece, and window what a decoder needs in front of it.
	piece  = 256 << 10
	window = 32 << 10
	// maxWindow limits how far zstd may refer back, as RFC 9659 does.
	maxWindow = 8 << 20
	// ratio is the assumed compression ratio of a page when its size is not known.
	ratio = 16
	least = 64 << 10
)

// streams decode zstd piece by piece. Each may have a window of 8 MiB, which the garbage collector takes when it is
// idle.
var streams sync.Pool

// A Decoder decodes one page after the other, and keeps its buffers in between, up to the size large for pages. Its
// zero value is ready.
type Decoder struct {
	gzip   inflate.Decoder
	buf    []byte
	packed []byte        // a part of a compressed page and the rest of the one before
	whole  *zstd.Decoder // decodes into buf
	in     bytes.Reader
}

// Held is the size of its page buffer in bytes.
func (d *Decoder) Held() int { return cap(d.buf) }

// Decode yields the page of r in chunks that are valid until yield returns, and returns the size of the page. A page of
// limit bytes or more gives ErrBodySize; zero stands for DefaultLimit. What was yielded before an error must not be
// used. An error of yield ends the decoding, with ReasonOther.
func (d *Decoder) Decode(r Response, limit int64, yield func(chunk []byte) error) (int64, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	switch r.Encoding {
	case Gzip:
		return d.gunzip(r.Body, limit-1, yield)
	case Zstd:
		return d.unzstd(r.Body, limit-1, yield)
	default:
		n := r.Before + int64(len(r.Body))
		if n >= limit {
			return n, tooLarge(limit - 1)
		}
		return n, give(r.Body, yield)
	}
}

// give yields a chunk, unless it is empty.
func give(chunk []byte, yield func([]byte) error) error {
	if len(chunk) == 0 {
		return nil
	}
	if err := yield(chunk); err != nil {
		return &readerError{err}
	}
	return nil
}

// room returns a buffer of size bytes or, if that is more than is kept, of the size that is kept.
func (d *Decoder) room(size int) []byte {
	if cap(d.buf) < size {
		d.buf = make([]byte, size)
	}
	return d.buf[:0]
}

func (d *Decoder) gunzip(body []byte, most int64, yield func([]byte) error) (int64, error) {
	if hint := inflate.SizeHint(body); hint <= largeGzip {
		page, err := d.gzip.Gunzip(d.room(hint+inflate.Slack), body, int(min(most, largeGzip)))
		if cap(page) > cap(d.buf) {
			d.buf = page
		}
		switch {
		case err == nil:
			return int64(len(page)), give(page, yield)
		case !errors.Is(err, inflate.ErrLimit) || most <= largeGzip:
			return int64(len(page)), failed(Gzip, int64(len(body)), most, err)
		}
	}
	buf := d.room(window + piece + inflate.Slack)
	var own error
	n, err := d.gzip.Stream(buf[:window+piece+inflate.Slack], body, most, func(chunk []byte) error {
		own = give(chunk, yield)
		return own
	})
	if own != nil {
		return n, own
	}
	return n, failed(Gzip, int64(len(body)), most, err)
}

// failed returns an error that says what is wrong with a body.
func failed(encoding Encoding, size, most int64, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, inflate.ErrLimit):
		return tooLarge(most)
	}
	return &encodingError{fmt.Errorf("cannot decode %s body of %d bytes: %w", encoding, size, err)}
}

func (d *Decoder) unzstd(body []byte, most int64, yield func([]byte) error) (int64, error) {
	if len(body) == 0 {
		return 0, failed(Zstd, int64(len(body)), most, io.ErrUnexpectedEOF)
	}
	if size := d.expected(body); size <= large {
		// An error other than too little room shows again below.
		if page, err := d.unzstdWhole(body, size); err == nil {
			if int64(len(page)) > most {
				return int64(len(page)), tooLarge(most)
			}
			return int64(len(page)), give(page, yield)
		}
	}
	n, err := d.unzstdPieces(body, most, yield)
	if err == nil && n <= large {
		d.room(min(int(n+n/8)+least, large)) // so that the next page of this size fits
	}
	return n, err
}

// expected estimates the size of a page: its first frame may tell.
func (d *Decoder) expected(body []byte) int {
	var h zstd.Header
	if h.Decode(body) == nil && h.HasFCS && !h.Skippable {
		return int(min(h.FrameContentSize, large+1))
	}
	return min(max(ratio*len(body), least), large+1)
}

// unzstdWhole decodes a page into the buffer, if it fits.
func (d *Decoder) unzstdWhole(body []byte, size int) ([]byte, error) {
	if d.whole == nil {
		var err error
		d.whole, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return nil, err
		}
	}
	return d.whole.DecodeAll(body, d.room(size))
}

func (d *Decoder) unzstdPieces(body []byte, most int64, yield func([]byte) error) (n int64, err error) {
	stream, ok := streams.Get().(*zstd.Decoder)
	if !ok {
		stream, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeBuffersBelow(0))
		if err != nil {
			return 0, err
		}
	}
	d.in.Reset(body)
	defer func() {
		_ = stream.Reset(nil) // releases the body
		streams.Put(stream)
		d.in.Reset(nil)
	}()
	if err := stream.Reset(&d.in); err != nil {
		return 0, failed(Zstd, int64(len(body)), most, err)
	}
	buf := d.room(piece)[:piece]
	for err == nil {
		k := 0
		for k < piece && err == nil {
			var read int
			read, err = stream.Read(buf[k:])
			k += read
		}
		if n += int64(k); n > most {
			return n, tooLarge(most)
		}
		if err := give(buf[:k], yield); err != nil {
			return n, err
		}
	}
	if errors.Is(err, io.EOF) {
		return n, nil
	}
	return n, failed(Zstd, int64(len(body)), most, err)
}
