// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"math"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
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
)

// A budget is the memory that a page may take.
type budget struct {
	left    int64
	longest int64 // that a line took of it while it was read
	of      int64 // as it was configured
}

// budget returns that of a page.
func (j *Job) budget() budget {
	if j.cfg.MaxMemory <= 0 {
		return budget{left: math.MaxInt64 / 2} // nothing that is added to it wraps around
	}
	return budget{left: j.cfg.MaxMemory, of: j.cfg.MaxMemory}
}

// spend takes memory for the page.
func (b *budget) spend(n int64) { b.left -= n }

// spendLongest takes memory for a line, or a part of one, while it is read: lines share it.
func (b *budget) spendLongest(n int64) {
	if n > b.longest {
		b.spend(n - b.longest)
		b.longest = n
	}
}

// afford returns an error when more memory was taken than there was.
func (b *budget) afford() error {
	if b.left < 0 {
		return MemoryError(b.of)
	}
	return nil
}

// mostWeight bounds what a line of a page adds to its weight, besides its text, which may be there twice.
const mostWeight = catalog.LineBytes + catalog.PointBytes + catalog.PieceBytes + sampleBytes + catalog.NameBytes + catalog.BaseBytes + catalog.FamilyBytes + metricBytes + catalog.MetaBytes + catalog.SaidBytes

// fits tells whether lines that were read, some of which were known, are together within the budget. Nearly always there is no
// need to weigh them.
func (e *ending) fits(lines []*catalog.Line) bool {
	c := e.target.cohort
	most := c.job.budget().left
	return 3*e.size+mostWeight*int64(len(lines)) <= most || c.Weigh(lines, sampleBytes, metricBytes) <= most
}
