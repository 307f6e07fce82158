// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"fmt"
	"math/bits"
)

// Size is the number of things in a request, counted without decoding them, so that memory can be reserved first: a
// small body can stand for very much. The content of exemplars and histograms is counted in bytes, everything else
// exactly.
type Size struct {
	Series, Labels, Samples, Exemplars, Histograms, Metadata, Symbols int
	// PointLabels is the sum, over all samples and histograms, of the labels of their series.
	PointLabels int
	// LongestSeries is the most labels that a series has.
	LongestSeries int
	// HistogramBytes and ExemplarBytes are the sizes of these messages in the body.
	HistogramBytes, ExemplarBytes int
}

// Memory of decoded things in bytes.
const (
	symbolSize    = 16
	labelSize     = 32
	referenceSize = 8
	sampleSize    = 24
	exemplarSize  = 40
	metadataSize  = 56
	seriesSize    = 168
	histogramSize = 256
	// A bucket of a histogram takes at least a byte of the message, a label of an exemplar two.
	histogramByteSize = 8
	exemplarByteSize  = labelSize/2 + referenceSize
)

// Memory is about how many bytes a Decoder needs for the request, besides the message itself.
func (s *Size) Memory() int {
	return s.Symbols*symbolSize + s.Labels*labelSize + s.LongestSeries*2*referenceSize + s.Series*seriesSize +
		s.Samples*sampleSize + s.Exemplars*exemplarSize + s.Histograms*histogramSize + s.Metadata*metadataSize +
		s.HistogramBytes*histogramByteSize + s.ExemplarBytes*exemplarByteSize
}

// Measure counts what a decompressed request has. It looks into messages only as far as needed: Decode may still refuse
// what it accepts.
func Measure(version Version, msg string) (Size, error) {
	var s Size
	var f field
	var err error
	length := len(msg)
	for msg != "" {
		if msg, err = f.next(msg); err != nil {
			return s, fmt.Errorf("cannot decode request of %d bytes: %w", length, at("after series", s.Series, err))
		}
		switch {
		case version == V2 && f.number == 4:
			s.Symbols++
		case version == V2 && f.number == 5 && f.wire == wireBytes:
			err = s.seriesV2(f.data)
		case version == V1 && f.number == 1 && f.wire == wireBytes:
			err = s.seriesV1(f.data)
		case version == V1 && f.number == 3:
			s.Metadata++
		}
		if err != nil {
			return s, fmt.Errorf("cannot decode request of %d bytes: %w", length, at("series", s.Series, err))
		}
	}
	return s, nil
}

func (s *Size) seriesV1(msg string) (err error) {
	var f field
	labels := 0
	for isShort(msg, labelsTag) { // fast path: most series are short labels, then short samples
		labels++
		msg = msg[2+int(msg[1]):]
	}
	msg, points := s.shortSamples(msg)
	for msg != "" {
		if msg, err = f.next(msg); err != nil {
			return err
		}
		switch f.number {
		case 1:
			labels++
		case 2:
			s.Samples++
			points++
		case 3:
			s.Exemplars++
			s.ExemplarBytes += len(f.data)
		case 4:
			s.Histograms++
			s.HistogramBytes += len(f.data)
			points++
		}
	}
	s.add(labels, points)
	return nil
}

func (s *Size) seriesV2(msg string) (err error) {
	var f field
	references, points := 0, 0
	if isShort(msg, labelsTag) { // fast path: most series are references, short samples and metadata
		end := 2 + int(msg[1])
		references = packedVarints(msg[2:end])
		msg, points = s.shortSamples(msg[end:])
		if isShort(msg, metadataTag) {
			msg = msg[2+int(msg[1]):]
		}
	}
	for msg != "" {
		if msg, err = f.next(msg); err != nil {
			return err
		}
		switch f.number {
		case 1:
			references += varints(&f)
		case 2:
			s.Samples++
			points++
		case 3:
			s.Histograms++
			s.HistogramBytes += len(f.data)
			points++
		case 4:
			s.Exemplars++
			s.ExemplarBytes += len(f.data)
		}
	}
	s.add((references+1)/2, points)
	return nil
}

// shortSamples counts the samples at the start of a message whose lengths take one byte each, and returns what follows.
func (s *Size) shortSamples(msg string) (rest string, n int) {
	for isShort(msg, samplesTag) {
		n++
		msg = msg[2+int(msg[1]):]
	}
	s.Samples += n
	return msg, n
}

func (s *Size) add(labels, points int) {
	s.Series++
	s.Labels += labels
	s.PointLabels += labels * points
	s.LongestSeries = max(s.LongestSeries, labels)
}

// varints counts the numbers of a field, packed or single: each ends in a byte below 0x80.
func varints(f *field) int {
	if f.wire != wireBytes {
		return 1
	}
	return packedVarints(f.data)
}

func packedVarints(data string) (n int) {
	for ; len(data) >= 8; data = data[8:] {
		n += bits.OnesCount64(^fixed64(data) & 0x8080808080808080)
	}
	for i := range len(data) {
		n += int(^data[i] >> 7)
	}
	return n
}

// expect reserves memory by what was measured, so that nothing grows step by step.
func (d *Decoder) expect(s *Size) {
	d.Series = withRoom(d.Series, s.Series)
	d.Metadata = withRoom(d.Metadata, s.Metadata)
	d.symbols = withRoom(d.symbols, s.Symbols)
	d.labels = withRoom(d.labels, s.Labels)
	d.samples = withRoom(d.samples, s.Samples)
	d.exemplars = withRoom(d.exemplars, s.Exemplars)
	d.histograms = withRoom(d.histograms, min(s.Histograms, d.most))
}

// withRoom returns s, which is empty, with capacity for n elements.
func withRoom[T any](s []T, n int) []T {
	if n > cap(s) {
		return make([]T, 0, n)
	}
	return s
}
