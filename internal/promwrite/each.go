// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"errors"
	"math"
)

// Each decodes a request that was measured, one series after another, in memory for one, and passes each to do. The
// series is valid until do returns; d.Series stays empty. Metadata is as after Decode.
//
// The labels of a series in the usual form, numbers without exemplars after short labels, stay encoded: most series of
// a sender are known, and comparing is cheaper than decoding. DecodeLabels decodes them; do must return its error if
// they are invalid. Series refer to msg.
func (d *Decoder) Each(version Version, msg string, size Size, do func(*Series) error) error {
	d.begin(len(msg))
	d.Metadata, d.symbols = withRoom(d.Metadata, size.Metadata), withRoom(d.symbols, size.Symbols)
	return d.each(version, msg, do)
}

func (d *Decoder) each(version Version, msg string, do func(*Series) error) error {
	d.do = do
	defer func() { d.do, d.one, d.rest, d.skip, d.unmeasured = nil, Series{}, "", 0, false }()
	return d.decode(version, msg)
}

// EachUsual is Each for a request that was not measured. It needs at most UsualMemory, and stops with an error at
// anything that could need more: a series in another form than the usual one, metadata outside of a series, or more
// symbols than most requests have. What do received before is as from Each, and the request may then be measured.
func (d *Decoder) EachUsual(version Version, msg string, do func(*Series) error) error {
	d.begin(len(msg))
	d.unmeasured = true
	return d.each(version, msg, do)
}

var errUnusual = errors.New("what comes has to be measured before")

const (
	// maxUsualSymbols is twice what a usual request of ten thousand series has.
	maxUsualSymbols = 1 << 14
	// maxUsualLabels limits the bytes of a series' labels, each of which takes two or more.
	maxUsualLabels = 4 << 10
	// maxUsualSamples limits the samples of a series, each of which takes leastSample bytes or more, with a time of one
	// byte.
	maxUsualSamples = 1 << 12
	leastSample     = 4
)

// UsualMemory is about the most memory that EachUsual needs for a message of a length, besides the message itself.
func UsualMemory(length int) int {
	return min(maxUsualSymbols, length/2)*symbolSize + min(maxUsualLabels, length)/2*labelSize + min(maxUsualSamples, length/leastSample)*sampleSize
}

// Skip records, while do handles a usual series, that the given number of further series, which are the first bytes of
// its Rest, are done.
func (d *Decoder) Skip(series, bytes int) {
	d.count += series - 1
	d.skip = bytes
}

// skipped returns what comes next: rest, which follows the series, or less.
func (d *Decoder) skipped(rest string) string {
	if d.skip == 0 {
		return rest
	}
	rest, d.skip = d.rest[d.skip:], 0
	return rest
}

// oneV1 decodes a series, for Decode or Each.
func (d *Decoder) oneV1(f *field) error {
	if d.do == nil {
		return d.seriesV1(f)
	}
	d.one = Series{Rest: d.rest}
	if msg, err := f.bytes(); err == nil && d.count < d.most && d.usualV1(msg, &d.one) { // fast path
		return d.giveUsual()
	}
	if d.unmeasured {
		return errUnusual
	}
	d.nextSeries()
	if err := d.seriesV1(f); err != nil {
		return err
	}
	return d.giveLast()
}

// oneV2 decodes a series, for Decode or Each.
func (d *Decoder) oneV2(f *field) error {
	if d.do == nil {
		return d.seriesV2(f)
	}
	d.one = Series{Rest: d.rest}
	if msg, err := f.bytes(); err == nil && d.count < d.most && d.usualV2(msg, &d.one) { // fast path
		return d.giveUsual()
	}
	if d.unmeasured {
		return errUnusual
	}
	d.nextSeries()
	if err := d.seriesV2(f); err != nil {
		return err
	}
	return d.giveLast()
}

func (d *Decoder) giveUsual() error {
	if d.unmeasured && len(d.one.Encoded) > maxUsualLabels {
		return errUnusual
	}
	if err := d.do(&d.one); err != nil {
		return err
	}
	d.count++
	return nil
}

// giveLast passes on the series that was decoded last.
func (d *Decoder) giveLast() error {
	last := len(d.Series) - 1
	d.one = d.Series[last]
	d.Series[last] = Series{}
	d.Series = d.Series[:last]
	return d.do(&d.one)
}

// nextSeries forgets what belongs to the last series.
func (d *Decoder) nextSeries() {
	d.labels = reuse(d.labels)
	d.samples = reuse(d.samples)
	d.exemplars = reuse(d.exemplars)
	d.exemplarLabels = reuse(d.exemplarLabels)
	d.histograms = reuse(d.histograms)
	d.positive.reset()
	d.negative.reset()
	d.customValues = reuse(d.customValues)
}

const (
	labelsTag   = 1<<3 | wireBytes
	samplesTag  = 2<<3 | wireBytes
	metadataTag = 5<<3 | wireBytes
)

// isShort reports whether a message begins with a field of this tag whose length takes one byte.
func isShort(msg string, tag byte) bool {
	return len(msg) > 1 && msg[0] == tag && msg[1] < 0x80 && 2+int(msg[1]) <= len(msg)
}

// usualV1 decodes a series of labels followed by samples. It returns false if there is anything else.
func (d *Decoder) usualV1(msg string, s *Series) bool {
	rest := msg
	for isShort(rest, labelsTag) {
		rest = rest[2+int(rest[1]):]
	}
	s.Encoded = msg[:len(msg)-len(rest)]
	rest = d.usualSamples(rest, s, false)
	return rest == "" && len(s.Samples) > 0
}

// usualV2 decodes a series of labels followed by samples and metadata. It returns false if there is anything else.
func (d *Decoder) usualV2(msg string, s *Series) bool {
	if !isShort(msg, labelsTag) {
		return false
	}
	end := 2 + int(msg[1])
	s.Encoded = msg[2:end]
	rest := d.usualSamples(msg[end:], s, true)
	if len(s.Samples) == 0 || rest == "" {
		return len(s.Samples) > 0
	}
	if !isShort(rest, metadataTag) || 2+int(rest[1]) != len(rest) {
		return false
	}
	return d.metadataV2(&field{wire: wireBytes, data: rest[2:]}, s) == nil
}

// usualSamples decodes the samples at the start of a message that have a value followed by a time and, in 2.0, possibly
// a start time. A zero value may be left out. It returns what follows.
func (d *Decoder) usualSamples(msg string, s *Series, starts bool) (rest string) {
	d.samples = d.samples[:0]
	for isShort(msg, samplesTag) {
		one := msg[2 : 2+int(msg[1])]
		value, end := uint64(0), 0
		if len(one) > 9 && one[0] == 1<<3|wireFixed64 {
			value, end = fixed64(one[1:]), 9
		}
		if len(one) < end+2 || one[end] != 2<<3|wireVarint {
			break
		}
		at, n, err := uvarint(one[end+1:])
		if err != nil {
			break
		}
		start := uint64(0)
		end += 1 + n
		if end < len(one) && one[end] == 3<<3|wireVarint && starts {
			if start, n, err = uvarint(one[end+1:]); err != nil {
				break
			}
			end += 1 + n
		}
		if end != len(one) || d.unmeasured && len(d.samples) == maxUsualSamples {
			break
		}
		d.samples = append(d.samples, Sample{
			Value: math.Float64frombits(value), Timestamp: int64(at), StartTimestamp: int64(start),
		})
		msg = msg[2+len(one):]
	}
	s.Samples = d.samples
	return msg
}

// DecodeLabels decodes the labels of a series that Each has left encoded. They are valid until the next series, and
// refer to the message.
func (d *Decoder) DecodeLabels(version Version, s *Series) (err error) {
	d.labels = reuse(d.labels)
	if version == V2 {
		d.refs = d.refs[:0]
		if d.refs, err = (&field{wire: wireBytes, data: s.Encoded}).appendUvarints(d.refs); err == nil {
			d.labels, err = d.appendLabels(d.labels, d.refs)
		}
		if err != nil {
			return inRefs(err)
		}
	} else {
		var f field
		for rest := s.Encoded; rest != ""; {
			if rest, err = f.next(rest); err == nil {
				d.labels, err = appendLabelV1(d.labels, &f)
			}
			if err != nil {
				return at("label", len(d.labels), err)
			}
		}
	}
	s.Labels = since(d.labels, 0)
	return nil
}

// NextLabel decodes the first of encoded 2.0 labels, and returns the rest. It returns false if there is none.
func (d *Decoder) NextLabel(encoded string) (l Label, rest string, ok bool) {
	name, n, err := uvarint(encoded)
	if err != nil {
		return l, "", false
	}
	value, m, err := uvarint(encoded[n:])
	if err != nil || max(name, value) >= uint64(len(d.symbols)) {
		return l, "", false
	}
	return Label{d.symbols[name], d.symbols[value]}, encoded[n+m:], true
}
