// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// The kernel maps up to 64 KiB around a page that is touched, or all of a large folio, but nothing beyond a mapping. So
// the executable's mappings are divided into pieces, and a piece of which any page came back is divided into its pages.
// Each mapping takes about 200 bytes of the kernel's memory, and a process may have 65,530.
const (
	// pagesOfPiece is odd, as are the pages of larger pieces: then, if every other page is marked, the pages of a piece
	// differ from each other and from those of adjacent pieces.
	pagesOfPiece = 5
	// manyPieces limits the number of pieces, and manyPages the additional mappings for their pages.
	manyPieces = 8192
	manyPages  = 8192
)

// A span is a range of addresses at which the executable's file is mapped, private and read-only. Adjacent mappings are
// one span.
type span struct {
	start, end uintptr
}

// An executable holds the mappings of the process's file, which never change.
type executable struct {
	mu     sync.Mutex
	spans  []span // nil until found
	pieces pieces
	uses   uses
}

// release unmaps the resident pages of the executable's file, except copies and pages in use. A page that is used again
// is mapped from the page cache, so code that runs meanwhile, including this function, is only delayed. It returns how
// much was unmapped.
func (e *executable) release() (int64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.find(); err != nil {
		return 0, err
	}
	divided := e.pieces.size > 0
	if !divided {
		e.pieces.divide(e.spans)
	}
	e.uses.begin()
	leave := func(of span, at uintptr, entry uint64) bool {
		if divided {
			e.pieces.page(of, at, entry)
		}
		return e.uses.next(entry&pagePresent != 0)
	}
	released := int64(0)
	err := eachRun(e.spans, leave, func(run span, resident int64) error {
		if errno := advise(run, unix.MADV_DONTNEED); errno != 0 { // EINVAL if the mapping is locked in memory
			return fmt.Errorf("cannot unmap %x-%x: %w", run.start, run.end, errno)
		}
		released += resident
		return nil
	})
	return released, err
}

// resident returns how much of the executable's file is resident, 0 if that is not known. Other files that the process
// has mapped, such as the database of file_storage, are the kernel's to reclaim, and do not concern the heap.
func (e *executable) resident() (resident int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.find() != nil {
		return 0
	}
	all := func(span, uintptr, uint64) bool { return false }
	err := eachRun(e.spans, all, func(_ span, pages int64) error {
		resident += pages
		return nil
	})
	if err != nil {
		return 0
	}
	return resident
}

func (e *executable) find() (err error) {
	if e.spans == nil {
		e.spans, err = spansOfBinary()
	}
	return err
}

// pieces are the parts of an executable's spans.
type pieces struct {
	size  uintptr              // of one piece in bytes; 0 before there are any
	paged map[uintptr]struct{} // pieces that are divided into pages, by their beginning
	pages int                  // the additional mappings of these
}

// divide divides spans into small mappings, if it can: adjacent ones differ in whether a core dump would contain them.
// That has no other effect, since dumps only contain pages of files on request. A failure is not reported, because the
// saving is small.
func (p *pieces) divide(spans []span) {
	size := uintptr(0)
	for _, s := range spans {
		size += s.end - s.start
	}
	page := uintptr(os.Getpagesize())
	p.size = max(pagesOfPiece, size/manyPieces/page|1) * page
	p.paged = map[uintptr]struct{}{}
	for _, s := range spans {
		for at := s.start; at < s.end; at += 2 * p.size {
			if advise(span{at, min(at+p.size, s.end)}, unix.MADV_DONTDUMP) != 0 {
				return
			}
		}
	}
}

// page is called for each page. If a page came back since the release of its piece, page divides the piece into
// mappings of single pages.
func (p *pieces) page(of span, at uintptr, entry uint64) {
	if isOwn(entry) || entry&pagePresent == 0 || p.pages >= manyPages {
		return
	}
	page := uintptr(os.Getpagesize())
	piece := (at - of.start) / p.size
	begin := of.start + piece*p.size
	if _, done := p.paged[begin]; done {
		return
	}
	p.paged[begin] = struct{}{}
	advice := uintptr(unix.MADV_DODUMP) // pages of a piece with an even number are marked
	if piece%2 == 1 {
		advice = unix.MADV_DONTDUMP
	}
	for at := begin + page; at < min(begin+p.size, of.end); at += 2 * page {
		if advise(span{at, at + page}, advice) == 0 {
			p.pages += 2
		}
	}
}

func advise(s span, advice uintptr) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, s.start, s.end-s.start, advice)
	return errno
}

func spansOfBinary() ([]span, error) {
	executable, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("cannot name the executable: %w", err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, fmt.Errorf("cannot read the memory map: %w", err)
	}
	defer func() { _ = maps.Close() }()
	return readSpans(maps, executable)
}

// readSpans returns the private, read-only mappings of the executable's file.
func readSpans(maps io.Reader, executable string) ([]span, error) {
	var spans []span
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		s, ok, err := parseMapping(lines.Text(), executable)
		switch n := len(spans); {
		case err != nil:
			return nil, err
		case !ok:
		case n > 0 && spans[n-1].end == s.start:
			spans[n-1].end = s.end
		default:
			spans = append(spans, s)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read the memory map: %w", err)
	}
	return spans, nil
}

// parseMapping parses "00400000-004ad000 r-xp 00000000 fe:00 9988417   /path". The path may contain spaces.
func parseMapping(line, executable string) (span, bool, error) {
	addresses, rest, _ := strings.Cut(line, " ")
	permissions, rest, _ := strings.Cut(rest, " ")
	if permissions != "r--p" && permissions != "r-xp" {
		return span{}, false, nil
	}
	_, path, _ := strings.Cut(rest, "/")
	if "/"+path != executable {
		return span{}, false, nil
	}
	low, high, _ := strings.Cut(addresses, "-")
	start, errStart := strconv.ParseUint(low, 16, 64)
	end, errEnd := strconv.ParseUint(high, 16, 64)
	if err := errors.Join(errStart, errEnd); err != nil || end <= start {
		return span{}, false, fmt.Errorf("cannot parse the addresses %q of the memory map", addresses)
	}
	return span{start: uintptr(start), end: uintptr(end)}, true, nil
}

// Bits and size of an entry in /proc/self/pagemap.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61
	pageEntry   = 8
)

// isOwn reports whether a page belongs to the process, in memory or swapped out: relocations, breakpoints and uprobes
// are copies of the file's pages, and would be lost.
func isOwn(entry uint64) bool {
	return entry&pageSwapped != 0 || entry&(pagePresent|pageOfFile) == pagePresent
}

// eachPage calls a function for each page, with the span that contains it.
func eachPage(spans []span, do func(of span, page uintptr, entry uint64)) error {
	pagemap, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return fmt.Errorf("cannot read what pages there are: %w", err)
	}
	defer func() { _ = pagemap.Close() }()
	page := uintptr(os.Getpagesize())
	entries := make([]byte, longRun*pageEntry)
	for _, s := range spans {
		for at := s.start; at < s.end; {
			some := entries[:min(uintptr(len(entries)), (s.end-at)/page*pageEntry)]
			if _, err := pagemap.ReadAt(some, int64(at/page*pageEntry)); err != nil {
				return fmt.Errorf("cannot read what pages there are: %w", err)
			}
			for ; len(some) > 0; some = some[pageEntry:] {
				do(s, at, binary.NativeEndian.Uint64(some))
				at += page
			}
		}
	}
	return nil
}

const (
	// longRun is the maximum number of pages in a run.
	longRun = 1024
	// gap is the maximum number of consecutive absent pages in a run: unmapping those as well costs less than a second
	// call.
	gap = 16
)

// eachRun calls a function for each run of pages that hold only the file, with its resident size. A run begins and ends
// with a resident page, and contains none of those that leave selects. Errors of the function are returned at the end.
func eachRun(spans []span, leave func(of span, page uintptr, entry uint64) bool, do func(run span, resident int64) error) error {
	var errs []error
	var run, in span
	resident := int64(0)
	end := func() {
		if run.end > run.start {
			errs = append(errs, do(run, resident))
		}
		run, resident = span{}, 0
	}
	page := uintptr(os.Getpagesize())
	err := eachPage(spans, func(of span, at uintptr, entry uint64) {
		if leave(of, at, entry) || isOwn(entry) {
			end()
			return
		}
		if entry&pagePresent == 0 {
			return
		}
		if of != in || at > run.end+gap*page || at-run.start >= longRun*page { // the state of earlier pages may have changed
			end()
			run.start, in = at, of // memory between spans is not the file's
		}
		run.end = at + page
		resident += int64(page)
	})
	end()
	return errors.Join(append(errs, err)...)
}
