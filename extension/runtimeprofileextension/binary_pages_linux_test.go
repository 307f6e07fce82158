// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"crypto/sha256"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	textMapping = "00400000-004ad000 r-xp 00000000 fe:00 99                         /opt/a b\n" +
		"Rss:                 692 kB\nPrivate_Dirty:       692 kB\nAnonymous:             0 kB\n" +
		"Swap:                  0 kB\nVmFlags: rd ex mr mw me\n"
	textAddresses = "00400000-004ad000"
)

func TestMappingsOfTheExecutableThatHoldOnlyTheFile(t *testing.T) {
	f := func(smaps string, want ...mapping) {
		t.Helper()
		got, err := readMappings([]byte(smaps), "/opt/a b")
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	text := mapping{start: 0x400000, end: 0x4ad000, resident: 692 << 10, untouched: true}
	touched := text
	touched.untouched = false
	replace := func(old, with string) string { return strings.Replace(textMapping, old, with, 1) }

	f(textMapping, text)
	f(replace("r-xp", "r--p"), text)
	f(replace("Anonymous:             0", "Anonymous:             4"), touched)
	f(replace("Swap:                  0", "Swap:                  4"), touched)
	f(replace("r-xp", "rw-p"))
	f(replace("r-xp", "r-xs"))
	f(replace("/opt/a b", "/opt/a"))
	f(replace("/opt/a b", ""))
	f(replace("/opt/a b", "[heap]"))
	f("7f00-7f01 r-xp 0 00:00 0 [vdso]\nAnonymous: 4 kB\n"+textMapping+"c000-d000 rw-p 0 00:00 0\nAnonymous: 4 kB\n", text)

	_, err := readMappings([]byte(replace(textAddresses, "zz-00")), "/opt/a b")
	require.ErrorContains(t, err, "cannot parse the addresses")
	_, err = readMappings([]byte(replace(textAddresses, "00500000-00400000")), "/opt/a b")
	require.ErrorContains(t, err, "cannot parse the addresses")
	_, err = readMappings([]byte(replace("692 kB", "many")), "/opt/a b")
	require.ErrorContains(t, err, "cannot parse \"Rss:")
}

func FuzzMappingsAreWellFormed(f *testing.F) {
	f.Add(textMapping)
	f.Add(textAddresses + " r--p 0 0 0 /opt/a b")
	f.Fuzz(func(t *testing.T, smaps string) {
		got, _ := readMappings([]byte(smaps), "/opt/a b")
		for _, m := range got {
			if m.start >= m.end || !strings.Contains(smaps, "/opt/a b") {
				t.Errorf("%+v", m)
			}
		}
	})
}

func ownMappings(t *testing.T) []mapping {
	t.Helper()
	executable, err := os.Readlink("/proc/self/exe")
	require.NoError(t, err)
	smaps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	mappings, err := readMappings(smaps, executable)
	require.NoError(t, err)
	return mappings
}

func resident(t *testing.T) int64 {
	t.Helper()
	total := int64(0)
	for _, m := range ownMappings(t) {
		total += m.resident
	}
	return total
}

// populate maps every page of the executable in, as a start that touches all of
// it would.
func populate(t *testing.T) {
	t.Helper()
	for _, m := range ownMappings(t) {
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_POPULATE_READ)
		if errno != 0 {
			t.Logf("cannot populate (Linux 5.14 can): %v", errno)
		}
	}
}

func TestReleasedPagesLeaveTheResidentSetAndTheProcessGoesOn(t *testing.T) {
	populate(t)
	before := resident(t)

	// The work that must not notice: collection, allocation, goroutines, and
	// code and read-only data of packages all over the executable.
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
		if _, err := releaseBinaryPages(); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	work.Wait()

	populate(t)
	released, err := releaseBinaryPages()
	require.NoError(t, err)
	after := resident(t)
	t.Logf("resident pages of the executable: %d KiB before, %d KiB after", before>>10, after>>10)
	assert.Less(t, after, before/4*3)
	assert.GreaterOrEqual(t, released, before-after)
}

func TestPagesWrittenToAreKept(t *testing.T) {
	exe, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer exe.Close()
	size := 4 * os.Getpagesize()
	mapExecutable := func() []byte {
		b, err := unix.Mmap(int(exe.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, unix.Munmap(b)) })
		return b
	}
	written := mapExecutable()
	copy(written, "breakpoint")
	require.NoError(t, unix.Mprotect(written, unix.PROT_READ))

	_, err = releaseBinaryPages()
	require.NoError(t, err)
	assert.Equal(t, "breakpoint", string(written[:len("breakpoint")]))
}

// What else is mapped, such as a database on disk, is not the executable's.
func TestOtherFilesAreNotCounted(t *testing.T) {
	const size = 64 << 20
	file, err := os.Create(t.TempDir() + "/database")
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, file.Truncate(size))
	own := residentBinaryPages()
	require.Positive(t, own)
	data, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(data)) }()
	sum := byte(0)
	for i := 0; i < size; i += os.Getpagesize() {
		sum += data[i]
	}
	require.Zero(t, sum)
	require.Less(t, residentBinaryPages(), own+size/4)
}
