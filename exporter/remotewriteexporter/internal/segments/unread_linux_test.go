// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAFileThatCannotBeReadCostsWhatIsInIt: reading it returns an error, as with a broken sector; the other files are
// read.
func TestAFileThatCannotBeReadCostsWhatIsInIt(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	const values = 25
	for i := range values {
		require.NoError(t, s.Set(t.Context(), fmt.Sprintf("b%02d", i), make([]byte, 1<<20)))
	}
	require.Len(t, s.segments, 4)
	lost := s.segments[1].values
	name := s.name(s.segments[1].number)
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, os.Remove(name))
	require.NoError(t, os.Symlink("/proc/self/mem", name)) // reading at its beginning fails
	_, err := os.ReadFile(name)
	require.ErrorIs(t, err, syscall.EIO)

	var told []Damage
	s, err = Open(dir, Options{Counted: "b", Damaged: func(d Damage) { told = append(told, d) }})
	require.NoError(t, err)
	require.Len(t, told, 1)
	assert.Equal(t, name, told[0].File)
	assert.Len(t, contents(t, s), values-lost)
	promised, ok := s.Promised()
	assert.True(t, ok)
	assert.Equal(t, values, promised)
	require.NoError(t, s.Close(t.Context()))
}

// TestAFirstFileThatIsGoneIsTold, by the number of values in the last record.
func TestAFirstFileThatIsGoneIsTold(t *testing.T) {
	for _, sync := range []bool{true, false} {
		dir := t.TempDir()
		var told []Damage
		opts := Options{Counted: "b", Sync: sync, Damaged: func(d Damage) { told = append(told, d) }}
		s, err := Open(dir, opts)
		require.NoError(t, err)
		for i := range 20 {
			require.NoError(t, s.Set(t.Context(), fmt.Sprintf("b%02d", i), make([]byte, 1<<20)))
		}
		first := s.name(s.segments[0].number)
		require.NoError(t, s.Close(t.Context()))
		require.NoError(t, os.Remove(first))
		s, err = Open(dir, opts)
		require.NoError(t, err)
		require.NoError(t, s.Close(t.Context()))
		if !sync { // cannot be distinguished from one that was deleted
			require.Empty(t, told)
			continue
		}
		require.Equal(t, []Damage{{File: first}}, told)
		promised, ok := s.Promised()
		require.True(t, ok)
		require.Equal(t, 20, promised)
	}
}

// TestALogOpensThoughThereIsNoRoomForAFile: its values can be read and deleted, which makes room.
func TestALogOpensThoughThereIsNoRoomForAFile(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=32m,nr_inodes=7"); err != nil {
		t.Skipf("cannot mount a file system of one's own here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	log := filepath.Join(dir, "log")
	for _, sync := range []bool{false, true} {
		s, err := Open(log, Options{Counted: "b", Sync: sync})
		require.NoError(t, err)
		for i := range 12 {
			require.NoError(t, s.Set(t.Context(), fmt.Sprintf("b%02d", i), make([]byte, 1<<20)))
		}
		require.NoError(t, s.Close(t.Context()))
		others := 0
		for ; ; others++ {
			f, err := os.Create(filepath.Join(dir, fmt.Sprint(others)))
			if err != nil {
				require.ErrorIs(t, err, syscall.ENOSPC)
				break
			}
			require.NoError(t, f.Close())
		}

		s, err = Open(log, Options{Counted: "b", Sync: sync})
		require.NoError(t, err)
		require.Len(t, contents(t, s), 12)
		require.Error(t, s.Set(t.Context(), "b99", make([]byte, 1<<20)))
		for i := range 12 {
			_ = s.Delete(t.Context(), fmt.Sprintf("b%02d", i)) // recorded in the log when possible
		}
		require.NoError(t, s.Set(t.Context(), "b99", make([]byte, 1<<20)), "there is room")
		require.Len(t, contents(t, s), 1)
		require.NoError(t, s.Delete(t.Context(), "b99"))
		require.NoError(t, s.Close(t.Context()))
		for i := range others {
			require.NoError(t, os.Remove(filepath.Join(dir, fmt.Sprint(i))))
		}
	}
}
