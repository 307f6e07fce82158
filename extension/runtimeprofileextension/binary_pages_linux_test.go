// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	textAddresses = "00400000-004ad000"
	textMapping   = textAddresses + " r-xp 00000000 fe:00 99                         /opt/a b\n"
)

func TestSpansOfTheExecutable(t *testing.T) {
	f := func(maps string, want ...span) {
		t.Helper()
		got, err := readSpans(strings.NewReader(maps), "/opt/a b")
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	text := span{start: 0x400000, end: 0x4ad000}
	replace := func(old, with string) string { return strings.Replace(textMapping, old, with, 1) }

	f(textMapping, text)
	f(replace("r-xp", "r--p"), text)
	f(replace("r-xp", "rw-p"))
	f(replace("r-xp", "r-xs"))
	f(replace("/opt/a b", "/opt/a"))
	f(replace("/opt/a b", ""))
	f(replace("/opt/a b", "[heap]"))
	f("7f00-7f01 r-xp 0 00:00 0 [vdso]\n"+textMapping+"c000-d000 rw-p 0 00:00 0\n", text)
	f(textMapping+"004ad000-004ae000 r--p 000ad000 fe:00 99 /opt/a b\n", span{start: 0x400000, end: 0x4ae000})
	f(textMapping+"004ae000-004af000 r--p 000ad000 fe:00 99 /opt/a b\n", text, span{start: 0x4ae000, end: 0x4af000})

	for _, wrong := range []string{replace(textAddresses, "zz-00"), replace(textAddresses, "00500000-00400000")} {
		_, err := readSpans(strings.NewReader(wrong), "/opt/a b")
		require.ErrorContains(t, err, "cannot parse the addresses")
	}
}

func FuzzSpansAreWellFormed(f *testing.F) {
	f.Add(textMapping)
	f.Add(textAddresses + " r--p 0 0 0 /opt/a b")
	f.Fuzz(func(t *testing.T, maps string) {
		got, _ := readSpans(strings.NewReader(maps), "/opt/a b")
		for _, s := range got {
			if s.start >= s.end || !strings.Contains(maps, "/opt/a b") {
				t.Errorf("%+v", s)
			}
		}
	})
}

func TestPagesOfTheProcess(t *testing.T) {
	assert.False(t, isOwn(0), "it is not there")
	assert.False(t, isOwn(pagePresent|pageOfFile))
	assert.False(t, isOwn(pagePresent|pageOfFile|1<<55), "changed in the page cache")
	assert.True(t, isOwn(pagePresent))
	assert.True(t, isOwn(pageSwapped))
}

func ownSpans(t *testing.T) []span {
	t.Helper()
	spans, err := spansOfBinary()
	require.NoError(t, err)
	return spans
}

// populate maps in every page of the executable, as a start that touches all of them would.
func populate(t *testing.T) {
	t.Helper()
	for _, m := range ownSpans(t) {
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_POPULATE_READ)
		if errno != 0 {
			t.Logf("cannot populate (Linux 5.14 can): %v", errno)
		}
	}
}

func TestReleasedPagesLeaveTheResidentSetAndTheProcessGoesOn(t *testing.T) {
	populate(t)
	var file executable
	before := file.resident()

	// Work that must not be affected: garbage collection, allocation, goroutines, and code and read-only data of
	// packages all over the executable.
	var stop atomic.Bool
	var rounds atomic.Int64
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for !stop.Load() {
				in := map[string][]int{"a": make([]int, 1000)}
				text, err := json.Marshal(in)
				if err != nil || sha256.Sum256(text) != sha256.Sum256([]byte(`{"a":[0`+strings.Repeat(",0", 999)+`]}`)) {
					t.Errorf("wrong answer while pages were released: %v", err)
					return
				}
				runtime.GC()
				rounds.Add(1)
			}
		})
	}
	for rounds.Load() < 40 && !t.Failed() {
		if _, err := file.release(); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	work.Wait()

	populate(t)
	released, err := file.release()
	require.NoError(t, err)
	after := file.resident()
	t.Logf("resident pages of the executable: %d KiB before, %d KiB after", before>>10, after>>10)
	assert.Less(t, after, before/4*3)
	assert.GreaterOrEqual(t, released, before-after)
}

// mapExecutable maps a part of the executable once more.
func mapExecutable(t *testing.T, size, protection int) []byte {
	t.Helper()
	exe, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer exe.Close()
	b, err := unix.Mmap(int(exe.Fd()), 0, size, protection, unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, unix.Munmap(b)) })
	return b
}

func TestPagesWrittenToAreKept(t *testing.T) {
	page := os.Getpagesize()
	written := mapExecutable(t, 8*page, unix.PROT_READ|unix.PROT_WRITE)
	const text = "breakpoint"
	for _, n := range []int{0, 3, 4, 7} {
		copy(written[n*page:], text)
	}
	beside := written[5*page]
	require.NoError(t, unix.Mprotect(written, unix.PROT_READ))

	_, err := new(executable).release()
	require.NoError(t, err)
	for _, n := range []int{0, 3, 4, 7} {
		assert.Equal(t, text, string(written[n*page:][:len(text)]))
	}
	assert.Equal(t, beside, written[5*page])
}

// After a release, a page that is touched brings back few of its neighbours, and after two releases none.
func TestTouchedPagesComeAlone(t *testing.T) {
	page := os.Getpagesize()
	size := 256 * page
	mapped := mapExecutable(t, size, unix.PROT_READ)
	start := uintptr(unsafe.Pointer(unsafe.SliceData(mapped)))
	file := executable{spans: []span{{start, start + uintptr(size)}}}
	there := func() int64 { return file.resident() / int64(page) }
	release := func() {
		t.Helper()
		_, err := file.release()
		require.NoError(t, err)
		require.Zero(t, there())
	}
	sum := byte(0)
	touch := func(every int) {
		for n := 0; n < len(mapped); n += every * page {
			sum += mapped[n]
		}
	}
	touch(1)
	require.EqualValues(t, 256, there())
	release()
	sum += mapped[size/2]
	assert.Positive(t, there())
	assert.LessOrEqual(t, there(), int64(pagesOfPiece))
	touch(1)
	release()
	touch(2)
	assert.EqualValues(t, 128, there(), "%d", sum)
	mappings := bytes.Count(mapsOf(t, start, size), []byte("\n"))
	assert.Equal(t, 256, mappings)
}

// Pieces of which no page came back are not split.
func TestOnlyWhatComesBackIsDividedIntoPages(t *testing.T) {
	page := os.Getpagesize()
	size := 40 * pagesOfPiece * page
	mapped := mapExecutable(t, size, unix.PROT_READ)
	start := uintptr(unsafe.Pointer(unsafe.SliceData(mapped)))
	file := executable{spans: []span{{start, start + uintptr(size)}}}
	_, err := file.release()
	require.NoError(t, err)
	sum := mapped[7*pagesOfPiece*page] + mapped[8*pagesOfPiece*page+2*page]
	for range 3 {
		_, err = file.release()
		require.NoError(t, err)
	}
	sum += mapped[8*pagesOfPiece*page+2*page]
	assert.EqualValues(t, page, file.resident(), "%d", sum)
	assert.Equal(t, 38+2*pagesOfPiece, bytes.Count(mapsOf(t, start, size), []byte("\n")))
	assert.Equal(t, 2*(pagesOfPiece-1), file.pieces.pages)
}

// mapsOf returns the lines of the mappings in a range.
func mapsOf(t *testing.T, start uintptr, size int) (lines []byte) {
	t.Helper()
	all, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	for line := range bytes.Lines(all) {
		low, _, _ := bytes.Cut(line, []byte("-"))
		at, err := strconv.ParseUint(string(low), 16, 64)
		require.NoError(t, err)
		if uintptr(at) >= start && uintptr(at) < start+uintptr(size) {
			lines = append(lines, line...)
		}
	}
	return lines
}

// Other mapped files, such as a database on disk, do not count as the executable.
func TestOtherFilesAreNotCounted(t *testing.T) {
	const size = 64 << 20
	file, err := os.Create(t.TempDir() + "/database")
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, file.Truncate(size))
	own := new(executable).resident()
	require.Positive(t, own)
	data, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(data)) }()
	sum := byte(0)
	for i := 0; i < size; i += os.Getpagesize() {
		sum += data[i]
	}
	require.Zero(t, sum)
	require.Less(t, new(executable).resident(), own+size/4)
}

// The cost of a release, without the page faults of what is used again.
func BenchmarkRelease(b *testing.B) {
	var file executable
	for b.Loop() {
		if _, err := file.release(); err != nil {
			b.Fatal(err)
		}
	}
	size := uintptr(0)
	for _, s := range file.spans {
		size += s.end - s.start
	}
	b.ReportMetric(float64(size)/(1<<20), "file-MB")
}
