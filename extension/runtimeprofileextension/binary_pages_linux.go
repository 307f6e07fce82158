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

// The kernel maps up to 64 KiB around a page that is touched, or all of a large folio, but nothing beyond a mapping. So the executable's
// mappings are divided: all of it into pieces, and a piece of which anything came back into its pages. Each mapping takes some 200 bytes of the
// kernel, and a process may have 65,530.
const (
	// pagesOfPiece is odd, as are the pages of larger pieces: then the pages of a piece differ from each other, and from those of its
	// neighbours, if every other one is marked.
	pagesOfPiece = 5
	// manyPieces limits the pieces, and manyPages the mappings more that their pages are.
	manyPieces = 8192
	manyPages  = 8192
)

// A span is addresses at which the executable's file is mapped, private and read-only. What is adjacent is one span.
type span struct {
	start, end uintptr
}

// An executable is where the file of the process is mapped, which never changes.
type executable struct {
	mu     sync.Mutex
	spans  []span // nil until they are found
	pieces pieces
	uses   uses
}

// release unmaps the pages of the executable's file that hold
// nothing but the file. A page used again is mapped back from the page cache, so
// code that runs meanwhile, this function's included, is only delayed. Pages that are in use are left. It
// returns how much was unmapped.
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
		if errno := advise(run, unix.MADV_DONTNEED); errno != 0 { // EINVAL when the mapping is locked in memory
			return fmt.Errorf("cannot unmap %x-%x: %w", run.start, run.end, errno)
		}
		released += resident
		return nil
	})
	return released, err
}

// resident is how much of the executable's file is resident, 0 if that cannot be told. Other files that the process has
// mapped, such as the database of file_storage, are the kernel's to take back, and no concern of the heap.
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

// pieces are what the spans of an executable are divided into.
type pieces struct {
	size  uintptr              // of one; 0 before there are any
	paged map[uintptr]struct{} // those that are divided into pages, by where they begin
	pages int                  // mappings more that these are
}

// divide makes small mappings of spans, if it can: neighbours differ in whether a dump of the process would have them, which it would not in
// any case, since pages of files are not dumped unless somebody asks for it. What it saves is not worth a word if it cannot.
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

// page is told of each page. It makes mappings of the pages of a piece that came back since it was released.
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
	advice := uintptr(unix.MADV_DODUMP) // for its pages are marked, if it has an even number
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

// parseMapping reads "00400000-004ad000 r-xp 00000000 fe:00 9988417   /path". The path may hold spaces.
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

// What /proc/self/pagemap tells of a page, in 8 bytes.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61
	pageEntry   = 8
)

// isOwn reports whether a page is the process' own, in memory or swapped out: relocations, breakpoints and uprobes are copies of the file's pages
// and would be lost.
func isOwn(entry uint64) bool {
	return entry&pageSwapped != 0 || entry&(pagePresent|pageOfFile) == pagePresent
}

// eachPage calls a function for each page of spans, with the span that it is of.
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
	// longRun is how many pages a run has at most.
	longRun = 1024
	// gap is how many pages in a row may be absent from a run: to unmap those as well is less than to unmap twice.
	gap = 16
)

// eachRun calls a function for each run of pages of spans that hold nothing but the file, with how much of it is resident. It begins and ends
// with a page that is, and has none of those that are to be left. Errors of the function are returned in the end.
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
		if of != in || at > run.end+gap*page || at-run.start >= longRun*page { // what was looked at long ago may be the process' own by now
			end()
			run.start, in = at, of // between spans there is what is not the file's
		}
		run.end = at + page
		resident += int64(page)
	})
	end()
	return errors.Join(append(errs, err)...)
}
