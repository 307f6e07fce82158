// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package segments

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// limited runs f with a limit on the size of files.
func limited(t *testing.T, was *syscall.Rlimit, size uint64, f func()) {
	t.Helper()
	// The go command makes tests record the files they open, in a file that is written when 4 KiB have been collected.
	// That must happen before, because writing would fail here, and the test with it: such a long name empties the
	// buffer.
	os.Getenv(strings.Repeat("x", 3*4096))
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	limit := *was
	limit.Cur = size
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, was)) }()
	f()
}

// TestAFullDiskGetsEmpty: a write that does not fit leaves nothing behind, deletions work, and then there is room
// again.
func TestAFullDiskGetsEmpty(t *testing.T) {
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	for _, sync := range []bool{false, true} {
		dir := t.TempDir()
		s, err := Open(dir, Options{Sync: sync})
		require.NoError(t, err)
		value := make([]byte, 1<<20)
		require.NoError(t, s.Set(t.Context(), "kept", value))
		limited(t, &was, 3<<19, func() { // the limit on the size of files
			for range 20 {
				require.Error(t, s.Set(t.Context(), "more", value))
			}
		})
		names, _ := files(t, dir)
		require.Len(t, names, 1)
		require.NoError(t, s.Delete(t.Context(), "kept"))
		require.NoError(t, s.Set(t.Context(), "more", value))
		require.NoError(t, s.Close(t.Context()))
		require.Len(t, contents(t, open(t, dir)), 1)
	}
}

// TestAFullDiskKeepsNoFileForALittle: a file that can no longer be written is deleted although one of its values is
// needed.
func TestAFullDiskKeepsNoFileForALittle(t *testing.T) {
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	for _, sync := range []bool{false, true} {
		dir := t.TempDir()
		s, err := Open(dir, Options{Sync: sync})
		require.NoError(t, err)
		require.NoError(t, s.Set(t.Context(), "index", []byte("kept")))
		limited(t, &was, 500<<10, func() {
			n := 0
			for ; s.Set(t.Context(), fmt.Sprint(n), make([]byte, 10<<10)) == nil; n++ {
				require.Less(t, n, 50)
			}
			require.Greater(t, n, 40)
			require.Error(t, s.Set(t.Context(), "more", make([]byte, 10<<10)), "all of it is of use")
			for i := range n {
				require.NoError(t, s.Delete(t.Context(), fmt.Sprint(i)))
			}
			require.NoError(t, s.Set(t.Context(), "more", make([]byte, 10<<10)))
		})
		_, size := files(t, dir)
		require.Less(t, size, int64(20<<10))
		require.FileExists(t, filepath.Join(dir, reserveName))
		require.NoError(t, s.Close(t.Context()))
		left := contents(t, open(t, dir))
		require.Len(t, left, 2)
		require.Equal(t, "kept", left["index"])
	}
}

// TestAFullDiskPromisesNothing: if a file was deleted while there was no room to record the deletions of its values,
// the log does not report the expected number of values until it can record them again.
func TestAFullDiskPromisesNothing(t *testing.T) {
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	const values = 20
	dir, killed := t.TempDir(), t.TempDir()
	s := open(t, dir)
	for i := range values {
		require.NoError(t, s.Set(t.Context(), fmt.Sprintf("b%02d", i), make([]byte, 1<<20)))
	}
	inFirst := s.segments[0].values
	limited(t, &was, uint64(s.active().size), func() {
		for i := range inFirst {
			require.Error(t, s.Delete(t.Context(), fmt.Sprintf("b%02d", i)))
		}
	})
	names, size := files(t, dir)
	require.Len(t, names, 2, "there is room all the same")
	require.Equal(t, s.Size(), size)
	require.NoError(t, os.CopyFS(killed, os.DirFS(dir)))

	after := open(t, killed)
	_, ok := after.Promised()
	require.False(t, ok)
	require.Len(t, contents(t, after), values-inFirst)
	require.NoError(t, after.Delete(t.Context(), fmt.Sprintf("b%02d", inFirst)))
	require.NoError(t, after.Close(t.Context()))
	after = open(t, killed)
	promised, ok := after.Promised()
	require.True(t, ok)
	require.Equal(t, values-inFirst-1, promised)

	require.NoError(t, s.Delete(t.Context(), fmt.Sprintf("b%02d", inFirst)))
	left, err := filepath.Glob(filepath.Join(dir, "*"+unrecordedSuffix))
	require.NoError(t, err)
	require.Empty(t, left)
}
