// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"math"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

// ErrMemory matches Result.Err, by errors.Is, when a page would take more memory than Config.MaxMemory.
var ErrMemory = errors.New("page takes too much memory")

// A MemoryError is the number of bytes that a page may take by Config.MaxMemory.
type MemoryError int64

func (e MemoryError) Error() string {
	return fmt.Sprintf("cannot read page: its series would take more memory than `max_page_memory` allows (%d bytes)", int64(e))
}

// Is makes the error match ErrMemory.
func (e MemoryError) Is(target error) bool { return target == ErrMemory }

// maxLine limits a line that comes in several chunks, which is held until its end has come. Lines of real pages have
// some hundred bytes; lines made to be long have a megabyte.
const maxLine = 8 << 20

// A lineError reports a line that is too long to be held.
type lineError struct{}

func (lineError) Error() string {
	return fmt.Sprintf("cannot read page: it has a line of more than %d bytes", maxLine)
}

// Is makes the error match ErrMemory.
func (lineError) Is(target error) bool { return target == ErrMemory }

// What a page takes, besides its text, until its metrics have been handed on and its plan is made.
const (
	// sampleBytes is what a sample takes: its value, its places in the lists of the scrape, the plan and the layout,
	// and in what these are made of. Lists that grow exist twice for a moment.
	sampleBytes = 200
	// labelBytes is what a label of the longest line takes while the line is read, and labelInMetrics what a label
	// takes in metrics.
	labelBytes     = 160
	labelInMetrics = 64
	// textCopies is how many copies of the longest line's text exist while it is read.
	textCopies = 6
	// carryCopies is how many copies of a collected page exist.
	carryCopies = 3
	// fewLabels is how many labels of a series are not counted, because they take so little in metrics.
	fewLabels = 32
	// metricBytes is what a metric takes in layouts, and in what these are made of.
	metricBytes = 120
	// exemplarBytes is what an exemplar takes, before it is in the metrics and there.
	exemplarBytes = 320
)

// A budget is the memory that a page may take.
type budget struct {
	left    int64
	longest int64 // the most that a line took while it was read
	of      int64 // the budget as configured
	begun   int64 // left at the beginning

	passing int64 // spent on what ends with the page even if its series are known
	usual   int64 // what the target's last good page spent on that

	room    *Room
	apart   int64 // spent, except on the catalog
	entered int64 // of that, what was taken from the room
}

// budget returns the budget of a page.
func (j *Job) budget() budget {
	if j.cfg.MaxMemory <= 0 {
		return budget{left: math.MaxInt64 / 2, begun: math.MaxInt64 / 2, room: j.cfg.Room} // without a limit; sums cannot overflow
	}
	return budget{left: j.cfg.MaxMemory, of: j.cfg.MaxMemory, begun: j.cfg.MaxMemory, room: j.cfg.Room}
}

// spend takes memory from the budget.
func (b *budget) spend(n int64) {
	b.left -= n
	b.apart += n
}

// spendPassing takes memory for text that is collected, native histograms and exemplars.
func (b *budget) spendPassing(n int64) {
	b.spend(n)
	b.passing += n
}

// spendLongest takes memory for a line, or a part of one, while it is read. Only the longest line counts, since lines
// reuse that memory.
func (b *budget) spendLongest(n int64) {
	if n > b.longest {
		b.spend(n - b.longest)
		b.longest = n
	}
}

// afford returns an error when more memory was spent than the budget had, or than all pages may take together.
func (b *budget) afford() error {
	if b.left < 0 {
		return MemoryError(b.of)
	}
	return b.enter()
}

// mostWeight is the most that a line of a page can add to its weight, besides its text, which may be stored twice.
const mostWeight = catalog.LineBytes + catalog.PointBytes + catalog.PieceBytes + sampleBytes + catalog.NameBytes + catalog.BaseBytes + catalog.FamilyBytes + metricBytes + catalog.MetaBytes + catalog.SaidBytes

// fits reports whether lines that were read, some of them known before, are within the budget together. Nearly always a
// rough bound shows it and nothing needs to be weighed.
func (e *ending) fits(lines []*catalog.Line) bool {
	c := e.target.cohort
	most := c.job.budget().left
	return 3*e.size+mostWeight*int64(len(lines)) <= most || c.Weigh(lines, sampleBytes, metricBytes) <= most
}
