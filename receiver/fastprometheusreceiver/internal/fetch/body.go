// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"sync"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/inflate"
)

// A Body decodes one page, which may come in parts. Between two parts it holds the state needed to decode the next one.
// Its zero value is ready; Close ends it.
type Body struct {
	gzip *inflate.Parts
}

// parts are the states of bodies in flight that are compressed and come in parts.
var parts = sync.Pool{New: func() any { return &inflate.Parts{} }}

// Part decodes a part that is not the last, under the same terms as [Decoder.Decode]. It returns the size of the page
// so far.
func (b *Body) Part(d *Decoder, r Response, limit int64, yield func(chunk []byte) error) (int64, error) {
	if r.Encoding == Gzip {
		return b.gunzip(d, r, false, limit, yield)
	}
	return d.Decode(r, limit, yield)
}

// End decodes the last part of a page, or one that came as a whole.
func (b *Body) End(d *Decoder, r Response, limit int64, yield func(chunk []byte) error) (int64, error) {
	if b.gzip != nil {
		return b.gunzip(d, r, true, limit, yield)
	}
	return d.Decode(r, limit, yield)
}

// Close gives back what the body holds.
func (b *Body) Close() {
	if b.gzip != nil {
		parts.Put(b.gzip)
		b.gzip = nil
	}
}

func (b *Body) gunzip(d *Decoder, r Response, last bool, limit int64, yield func(chunk []byte) error) (int64, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	if b.gzip == nil {
		b.gzip = parts.Get().(*inflate.Parts)
		b.gzip.Reset()
	}
	buf := d.room(window + piece + inflate.Slack)[:window+piece+inflate.Slack]
	var own error
	n, err := b.gzip.Decode(buf, &d.packed, r.Body, last, limit-1, func(chunk []byte) error {
		own = give(chunk, yield)
		return own
	})
	if own != nil {
		return n, own
	}
	return n, failed(Gzip, r.Before+int64(len(r.Body)), limit-1, err)
}
