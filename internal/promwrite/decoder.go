// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"errors"
	"fmt"
	"math"
)

// maxRetained bounds, in elements, each slice a Decoder keeps between requests: one huge request must not pin
// memory for ever. It is above what a request of 8 MiB, the largest that senders make on purpose, needs.
const maxRetained = 1 << 20

// minSize is the fewest bytes that a series or a histogram takes up, on average over a body. Real ones, with a label and
// a time, take more; empty ones of two bytes would let a body grow a hundredfold in memory.
const minSize = 12

var errDense = errors.New("more series or histograms than a body of this size can hold")

// A Decoder decodes requests. Its zero value is ready; use one per goroutine.
type Decoder struct {
	// MaxText limits the text that references of a request of 2.0 stand for, however often they stand for the same; 0 does not. What refers to
	// a symbol has to be looked through, and may be written out by others, each time.
	MaxText int

	Series   []Series   // valid until the next Decode
	Metadata []Metadata // 1.0 only; valid until the next Decode

	// The slices inside Series are cut from these. Each repeated field has one of its own, so that a series'
	// part of it is contiguous in whatever order the fields arrive.
	symbols        []string
	labels         []Label
	samples        []Sample
	exemplars      []Exemplar
	exemplarLabels []Label
	histograms     []Histogram
	positive       buckets
	negative       buckets
	customValues   []float64

	text  int      // what references stood for so far, in bytes
	most  int      // how many series, and how many histograms, the body can hold
	count int      // series so far
	dense int      // histograms so far
	refs  []uint64 // scratch: the label references of one message

	do   func(*Series) error // what Each gives series to; nil for Decode
	one  Series              // what it gives
	rest string              // the message from there on
	skip int                 // how much of that is done with, if more than the series
	// unmeasured says that nothing may be decoded whose memory is not bounded: see EachUsual.
	unmeasured bool
}

type buckets struct {
	spans  []Span
	deltas []int64
	counts []float64
}

// Decode reads one request, decompressed, into d.Series and d.Metadata. After an error these hold nothing.
// body may be reused as soon as Decode has returned.
func (d *Decoder) Decode(version Version, body []byte) error {
	return d.DecodeMeasured(version, string(body), Size{})
}

// DecodeMeasured is Decode for a message that was measured. What is decoded refers to msg.
func (d *Decoder) DecodeMeasured(version Version, msg string, size Size) error {
	d.begin(len(msg))
	d.expect(&size)
	return d.decode(version, msg)
}

func (d *Decoder) decode(version Version, msg string) (err error) {
	switch version {
	case V1:
		err = d.requestV1(msg)
	case V2:
		err = d.requestV2(msg)
	default:
		err = fmt.Errorf("version %d is unknown", version)
	}
	if err != nil {
		d.Reset()
		return fmt.Errorf("cannot decode request of %d bytes: %w", len(msg), err)
	}
	return nil
}

// begin begins a request of so many bytes.
func (d *Decoder) begin(length int) {
	d.Reset()
	d.most, d.count, d.dense, d.text = length/minSize+1, 0, 0, 0
}

// add closes a series.
func (d *Decoder) add(s Series) error {
	if d.count == d.most {
		return errDense
	}
	d.count++
	d.Series = append(d.Series, s)
	return nil
}

// Reset forgets the last request.
func (d *Decoder) Reset() {
	d.Series = reuse(d.Series)
	d.Metadata = reuse(d.Metadata)
	d.symbols = reuse(d.symbols)
	d.refs = reuse(d.refs)
	d.nextSeries()
}

func (b *buckets) reset() {
	b.spans = reuse(b.spans)
	b.deltas = reuse(b.deltas)
	b.counts = reuse(b.counts)
}

// reuse empties s, and refers no longer to what its elements referred to.
func reuse[T any](s []T) []T {
	if cap(s) > maxRetained {
		return nil
	}
	clear(s)
	return s[:0]
}

// since is what was appended to s after it was of length start, closed against further appends.
func since[T any](s []T, start int) []T {
	if start == len(s) {
		return nil
	}
	return s[start:len(s):len(s)]
}

// at says where in an enclosing message decoding stopped.
func at(what string, index int, err error) error {
	return fmt.Errorf("%s %d: %w", what, index, err)
}

// inField says in which field of a message decoding stopped.
func inField(number uint32, err error) error {
	return fmt.Errorf("field %d: %w", number, err)
}

// sample decodes either version's Sample; to 1.0 the start timestamp is an unknown field, skipped.
//
//	message Sample {
//	  double value          = 1;
//	  int64 timestamp       = 2;
//	  int64 start_timestamp = 3; // 2.0 only
//	}
func (d *Decoder) sample(f *field, version Version) error {
	msg, err := f.bytes()
	if err != nil {
		return err
	}
	var s Sample
	if len(msg) > 10 && msg[0] == 1<<3|wireFixed64 && msg[9] == 2<<3|wireVarint { // fast path: a value and a time
		if at, n, err := uvarint(msg[10:]); err == nil && n == len(msg)-10 {
			d.samples = append(d.samples, Sample{Value: math.Float64frombits(fixed64(msg[1:])), Timestamp: int64(at)})
			return nil
		}
	}
	for msg != "" {
		if msg, err = f.next(msg); err != nil {
			return err
		}
		switch f.number {
		case 1:
			s.Value, err = f.double()
		case 2:
			s.Timestamp, err = f.int64()
		case 3:
			if version == V2 {
				s.StartTimestamp, err = f.int64()
			}
		}
		if err != nil {
			return inField(f.number, err)
		}
	}
	d.samples = append(d.samples, s)
	return nil
}
