// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"fmt"
	"math/bits"
)

// Size is what a request holds, counted without decoding it, so that memory can be found for it first: a small body can
// stand for very much. What is inside exemplars and histograms is counted in bytes, all else exactly.
type Size struct {
	Series, Labels, Samples, Exemplars, Histograms, Metadata, Symbols int
	// PointLabels sums up, over all samples and histograms, the labels of their series.
	PointLabels int
	// LongestSeries is the most labels that a series has.
	LongestSeries int
	// HistogramBytes and ExemplarBytes are what these messages take up in the body.
	HistogramBytes, ExemplarBytes int
}

// Bytes of memory that a decoded thing takes up.
const (
	symbolSize    = 16
	labelSize     = 32
	referenceSize = 8
	sampleSize    = 24
	exemplarSize  = 40
	metadataSize  = 56
	seriesSize    = 168
	histogramSize = 256
	// A bucket of a histogram takes a byte or more of the message, a label of an exemplar two.
	histogramByteSize = 8
	exemplarByteSize  = labelSize/2 + referenceSize
)

// Memory is about how many bytes a Decoder needs for the request, beside the message itself.
func (s *Size) Memory() int {
	return s.Symbols*symbolSize + s.Labels*labelSize + s.LongestSeries*2*referenceSize + s.Series*seriesSize +
		s.Samples*sampleSize + s.Exemplars*exemplarSize + s.Histograms*histogramSize + s.Metadata*metadataSize +
		s.HistogramBytes*histogramByteSize + s.ExemplarBytes*exemplarByteSize
}

// Measure counts what a request, decompressed, holds. It looks no deeper into messages than it must: what it finds no fault
// with Decode may still refuse.
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

// shortSamples counts the samples at the head of a message whose lengths take a byte each, and returns what follows.
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

// expect makes room for what was measured, so that nothing grows piece by piece.
func (d *Decoder) expect(s *Size) {
	d.Series = withRoom(d.Series, s.Series)
	d.Metadata = withRoom(d.Metadata, s.Metadata)
	d.symbols = withRoom(d.symbols, s.Symbols)
	d.labels = withRoom(d.labels, s.Labels)
	d.samples = withRoom(d.samples, s.Samples)
	d.exemplars = withRoom(d.exemplars, s.Exemplars)
	d.histograms = withRoom(d.histograms, min(s.Histograms, d.most))
}

// withRoom is s, which is empty, with room for n elements.
func withRoom[T any](s []T, n int) []T {
	if n > cap(s) {
		return make([]T, 0, n)
	}
	return s
}
