// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// told opens a log, and returns what it reports.
func told(t *testing.T, dir string, sync bool) (list []Damage, promised int) {
	t.Helper()
	s, err := Open(dir, Options{Counted: "b", Sync: sync, Damaged: func(d Damage) { list = append(list, d) }})
	require.NoError(t, err)
	promised, ok := s.Promised()
	if !ok {
		promised = unknown
	}
	require.NoError(t, s.Close(t.Context()))
	return list, promised
}

// fill creates a log of three files with five values, and returns the names of the files.
func fill(t *testing.T, dir string, sync bool) (names []string) {
	t.Helper()
	s, err := Open(dir, Options{Counted: "b", Sync: sync})
	require.NoError(t, err)
	for i := range 5 {
		require.NoError(t, s.Set(t.Context(), fmt.Sprint("b", i), make([]byte, usual/2-100)))
	}
	for _, g := range s.segments {
		names = append(names, s.name(g.number))
	}
	require.Len(t, names, 3)
	require.NoError(t, s.Close(t.Context()))
	return names
}

// TestALogThatEndsTooEarlyIsTold: once, with the number of values there were.
func TestALogThatEndsTooEarlyIsTold(t *testing.T) {
	for _, sync := range []bool{false, true} {
		for name, f := range map[string]func(t *testing.T, names []string) Damage{
			"the last file is deleted": func(t *testing.T, names []string) Damage {
				info, err := os.Stat(names[2])
				require.NoError(t, err)
				require.NoError(t, os.Remove(names[2]))
				return Damage{File: names[2], Bytes: info.Size(), Ended: true}
			},
			"the last two files are deleted": func(t *testing.T, names []string) Damage {
				require.NoError(t, os.Remove(names[1]))
				require.NoError(t, os.Remove(names[2]))
				return Damage{File: names[2], Ended: true}
			},
			"all files are deleted": func(t *testing.T, names []string) Damage {
				for _, name := range names {
					require.NoError(t, os.Remove(name))
				}
				return Damage{File: names[2], Ended: true}
			},
			"the last file is cut off before its first record": func(t *testing.T, names []string) Damage {
				info, err := os.Stat(names[2])
				require.NoError(t, err)
				require.NoError(t, os.Truncate(names[2], 0))
				return Damage{File: names[2], Bytes: info.Size(), Ended: true}
			},
		} {
			t.Run(fmt.Sprintf("%s, sync=%v", name, sync), func(t *testing.T) {
				dir := t.TempDir()
				want := f(t, fill(t, dir, sync))
				list, promised := told(t, dir, sync)
				assert.Equal(t, []Damage{want}, list)
				assert.Equal(t, 5, promised)
				list, _ = told(t, dir, sync)
				assert.Empty(t, list)
			})
		}
	}
}

// TestWhatIsNotBeyondTheEndTellsNothing: a file that was left behind, one from the log of an earlier version or of
// none, and an invalid one.
func TestWhatIsNotBeyondTheEndTellsNothing(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, reachedName)
	fill(t, dir, true)
	early, err := os.ReadFile(name)
	require.NoError(t, err)
	s := open(t, dir)
	for i := range 5 {
		require.NoError(t, s.Delete(t.Context(), fmt.Sprint("b", i)))
	}
	require.NoError(t, s.Set(t.Context(), "b9", []byte("value")))
	require.NoError(t, s.Close(t.Context()))
	for what, content := range map[string][]byte{
		"behind": early, "empty": {}, "odd": append([]byte{0xff, 0xff, 0xff}, early[3:]...), "long": append(early, 0),
	} {
		require.NoError(t, os.WriteFile(name, content, 0o600))
		list, promised := told(t, dir, true)
		assert.Empty(t, list, what)
		assert.Equal(t, 1, promised, what)
	}
}

// TestNothingIsToldOfAnEndThatHadNothing: an empty queue, all of whose files are deleted.
func TestNothingIsToldOfAnEndThatHadNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	require.NoError(t, s.Set(t.Context(), "b1", []byte("value")))
	require.NoError(t, s.Delete(t.Context(), "b1"))
	require.NoError(t, s.Close(t.Context()))
	names, _ := files(t, dir)
	for _, name := range names {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	list, _ := told(t, dir, true)
	assert.Empty(t, list)
}

// TestAPowerCutWithoutWaitsPromisesNothing: of the last writes, any part of both files may be on the disk.
func TestAPowerCutWithoutWaitsPromisesNothing(t *testing.T) {
	dir := t.TempDir()
	names := fill(t, dir, false)
	s := &Store{dir: dir, segments: []*segment{{number: 3, size: 1 << 20}}, counted: 5, boot: thisBoot() + 1}
	var err error
	s.reached, err = os.OpenFile(filepath.Join(dir, reachedName), os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, s.noteReached())
	require.NoError(t, s.reached.Close())
	require.NoError(t, os.Remove(names[2]))
	list, promised := told(t, dir, false)
	assert.Equal(t, []Damage{{File: names[2], Bytes: 1 << 20, Ended: true}}, list)
	assert.Equal(t, 4, promised, "what the log says where it ends")
}
