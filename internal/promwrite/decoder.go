// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"errors"
	"fmt"
	"math"
)

// maxRetained limits, in elements, each slice that a Decoder keeps between requests: one huge request must not hold
// memory for ever. Requests of 8 MiB, the largest that senders intend, need less.
const maxRetained = 1 << 20

// minSize is the least average size of a series or a histogram in a body. Real ones, with a label and a time, take
// more; empty ones of two bytes would let a body grow a hundredfold in memory.
const minSize = 12

var errDense = errors.New("more series or histograms than a body of this size can hold")

// A Decoder decodes requests. Its zero value is ready; use one per goroutine.
type Decoder struct {
	// MaxText limits the text that references of a 2.0 request stand for, counting repetitions; 0 is no limit. Each
	// reference costs time, and may be written out by consumers.
	MaxText int

	Series   []Series   // valid until the next Decode
	Metadata []Metadata // 1.0 only; valid until the next Decode

	// The slices in Series are parts of these. Each repeated field has a slice of its own, so that a series' part of it
	// is contiguous in whatever order the fields arrive.
	symbols        []string
	labels         []Label
	samples        []Sample
	exemplars      []Exemplar
	exemplarLabels []Label
	histograms     []Histogram
	positive       buckets
	negative       buckets
	customValues   []float64

	text  int      // bytes that references stood for so far
	most  int      // how many series, and how many histograms, the body can hold
	count int      // series so far
	dense int      // histograms so far
	refs  []uint64 // memory for the label references of one message

	do   func(*Series) error // receives series from Each; nil for Decode
	one  Series              // the series passed to do
	rest string              // the message from that series on
	skip int                 // bytes of it to skip, beyond the series
	// unmeasured says that nothing of unlimited size may be decoded: see EachUsual.
	unmeasured bool
}

type buckets struct {
	spans  []Span
	deltas []int64
	counts []float64
}

// Decode decodes one decompressed request into d.Series and d.Metadata. After an error these are empty. body may be
// reused as soon as Decode has returned.
func (d *Decoder) Decode(version Version, body []byte) error {
	return d.DecodeMeasured(version, string(body), Size{})
}

// DecodeMeasured is Decode for a message that was measured. The result refers to msg.
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

// begin begins a request of the given length.
func (d *Decoder) begin(length int) {
	d.Reset()
	d.most, d.count, d.dense, d.text = length/minSize+1, 0, 0, 0
}

// add completes a series.
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

// reuse empties s, and clears the references of its elements.
func reuse[T any](s []T) []T {
	if cap(s) > maxRetained {
		return nil
	}
	clear(s)
	return s[:0]
}

// since returns what was appended to s since it had the length start, with no capacity beyond that.
func since[T any](s []T, start int) []T {
	if start == len(s) {
		return nil
	}
	return s[start:len(s):len(s)]
}

// at adds the place in the enclosing message to an error.
func at(what string, index int, err error) error {
	return fmt.Errorf("%s %d: %w", what, index, err)
}

// inField adds the field of a message to an error.
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
