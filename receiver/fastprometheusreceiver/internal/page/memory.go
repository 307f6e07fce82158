// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
)

// ErrMemory is what Result.Err is, in the sense of errors.Is, when a page would take more memory than Config.MaxMemory.
var ErrMemory = errors.New("page takes too much memory")

// A MemoryError says how much a page may take by Config.MaxMemory.
type MemoryError int64

func (e MemoryError) Error() string {
	return fmt.Sprintf("cannot read page: its series would take more memory than `max_page_memory` allows (%d bytes)", int64(e))
}

// Is makes the error one of ErrMemory.
func (e MemoryError) Is(target error) bool { return target == ErrMemory }

// maxLine bounds a line that comes in several chunks: it is held until its end is there. One of a real page has some hundred
// bytes, one of those made to be long a megabyte.
const maxLine = 8 << 20

// A lineError is a line that is too long to be held.
type lineError struct{}

func (lineError) Error() string {
	return fmt.Sprintf("cannot read page: it has a line of more than %d bytes", maxLine)
}

// Is makes the error one of ErrMemory.
func (lineError) Is(target error) bool { return target == ErrMemory }

// What things take that a cohort knows, in bytes, besides their texts: with their slots in tables and their share of maps.
const (
	slotBytes        = 10
	lineBytes        = 48 + slotBytes
	pointBytes       = 32 + slotBytes
	nameBytes        = 88 + slotBytes
	baseBytes        = 144 + slotBytes
	familyBytes      = 48
	metaBytes        = 88
	untoldBytes      = 64
	formBytes        = 40
	formSlotBytes    = 40
	shapeBytes       = 256
	shapedValueBytes = 24
	keysBytes        = 160
	keyBytes         = 18
	attributeBytes   = 64
	resourceBytes    = 112
	scopeBytes       = 200
	saidBytes        = 96
	conditionBytes   = 160
	givenBytes       = 24
	sweepBytes       = 4 << 20 // that may be too many without a sweep
)

func (l *line) bytes() int64 {
	if !l.isWhole() && !l.isSlotted() || string(*l.body) == l.name.exposed {
		return lineBytes + pieceBytes
	}
	return lineBytes + pieceBytes + int64(len(*l.body))
}

func (n *name) bytes() int64 {
	if n.exposed != n.final {
		return nameBytes + int64(len(n.final)+len(n.exposed))
	}
	return nameBytes + int64(len(n.final))
}

func (k *keys) bytes(key int) int64 { return keysBytes + int64(key) + keyBytes*int64(len(k.names)) }

func (cond *condition) bytes() int64 { return conditionBytes + givenBytes*int64(len(cond.answers)) }

func (r *resource) bytes() int64 { return resourceBytes + int64(len(r.job)+len(r.instance)) }

func (s *scope) bytes(key int) int64 {
	return scopeBytes + 2*int64(key) + attributeBytes*int64(len(s.attributes))
}

func (l *layout) bytes() int64 {
	n := 24*int64(len(l.metrics)) + 12*int64(len(l.points)) + 4*int64(len(l.created)+len(l.about)) + 12*int64(len(l.runs)) +
		40*int64(len(l.resources)+len(l.scopes))
	for i := range l.groups {
		n += 64 + 16*int64(len(l.groups[i].parts))
	}
	return n
}

// held returns how many bytes the cohort knows, about.
func (c *cohort) held() int64 { return c.size + c.written }

// What a page takes besides, until its metrics have been handed on, and its plan.
const (
	// sampleBytes are of a sample: its value, its places in the lists of the scrape, the plan and the layout, and in what
	// these are made of. Lists that grow are there twice for a moment.
	sampleBytes = 200
	// labelBytes are of a label of the longest line while that is read, and labelInMetrics of one in metrics.
	labelBytes     = 160
	labelInMetrics = 64
	// textCopies are how many times the longest line's text is there while it is read.
	textCopies = 6
	// carryCopies are how many times a page that is collected is there.
	carryCopies = 3
	// fewLabels is how many labels a series has of which metrics take so little that it is not worth counting.
	fewLabels = 32
	// metricBytes are of a metric: in layouts, and in what these are made of.
	metricBytes = 120
	// exemplarBytes are of an exemplar: until it is in the metrics, and there.
	exemplarBytes = 320
	// nativeBytes are of a native histogram, spanBytes and bucketBytes of its parts. There are countBytes in metrics of each
	// bucket and of those between two spans.
	nativeBytes = 512
	spanBytes   = 16
	bucketBytes = 8
	countBytes  = 8
)

// spend takes memory for the page.
func (s *Scrape) spend(n int64) { s.left -= n }

// afford returns an error when more memory was taken than there was.
func (s *Scrape) afford() error {
	if s.left < 0 {
		return MemoryError(s.target.cohort.job.cfg.MaxMemory)
	}
	return nil
}

// budget is the memory that a page may take.
func (j *Job) budget() int64 {
	if j.cfg.MaxMemory <= 0 {
		return math.MaxInt64 / 2 // nothing that is added to it wraps around
	}
	return j.cfg.MaxMemory
}

// spendLongest takes memory for a line, or a part of one, while it is read: lines share it.
func (s *Scrape) spendLongest(n int64) {
	if n > s.longest {
		s.spend(n - s.longest)
		s.longest = n
	}
}

// bytes is what a native histogram takes, and what it comes to: buckets between spans have counts, too.
func (v nativeValue) bytes() int64 {
	n := int64(nativeBytes)
	for _, spans := range v.spans() {
		n += spanBytes*int64(len(spans)) + countBytes*int64(width(spans))
	}
	return n + bucketBytes*int64(v.buckets())
}

func (v nativeValue) spans() [2][]histogram.Span {
	if v.h != nil {
		return [2][]histogram.Span{v.h.PositiveSpans, v.h.NegativeSpans}
	}
	return [2][]histogram.Span{v.fh.PositiveSpans, v.fh.NegativeSpans}
}

// weigh returns what memory a page of lines takes, about, whatever of it is known already.
func (c *cohort) weigh(lines []*line) (n int64) {
	c.epoch++
	c.marked = nil
	for _, l := range lines {
		n += lineBytes + pointBytes + pieceBytes + sampleBytes + int64(l.len())
		if l.name.epoch != c.epoch {
			l.name.epoch = c.epoch
			n += l.name.bytes() + baseBytes + familyBytes + metricBytes
		}
		if m, ok := c.metas[l]; ok {
			n += metaBytes + saidBytes + int64(len(m.text))
		}
	}
	return n
}

// mostWeight bounds what a line of a page adds to its weight, besides its text, which may be there twice.
const mostWeight = lineBytes + pointBytes + pieceBytes + sampleBytes + nameBytes + baseBytes + familyBytes + metricBytes + metaBytes + saidBytes

// fits tells whether lines that were read, some of which were known, are together within the budget. Nearly always there is no
// need to weigh them.
func (s *Scrape) fits(lines []*line) bool {
	c := s.target.cohort
	budget := c.job.budget()
	return 3*s.size+mostWeight*int64(len(lines)) <= budget || c.weigh(lines) <= budget
}
