// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// makeStranger creates a directory with the name of a file of the log, and something in it.
func makeStranger(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, os.Mkdir(name, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(name, "theirs"), []byte("a stranger's"), 0o600))
}

// TestAFolderWithTheNameOfAFileStopsNoStart: the directory is renamed, which is reported, and its contents are not
// touched. There may be another one of the same name later.
func TestAFolderWithTheNameOfAFileStopsNoStart(t *testing.T) {
	dir := t.TempDir()
	names := fill(t, dir, true)
	for _, at := range []string{names[0][:len(names[0])-len("01"+suffix)] + "ff" + suffix, filepath.Join(dir, "0000000000000000"+suffix)} {
		for _, moved := range []string{at + foreignSuffix + "1", at + foreignSuffix + "2"} {
			makeStranger(t, at)
			list, promised := told(t, dir, true)
			assert.Equal(t, []Damage{{File: moved, Foreign: true}}, list)
			assert.Equal(t, 5, promised)
			assert.FileExists(t, filepath.Join(moved, "theirs"))
		}
	}
	list, _ := told(t, dir, true)
	assert.Empty(t, list)
	assert.Len(t, contents(t, open(t, dir)), 5)
}

// TestWhatIsInThePlaceOfAFileIsNotRead: a directory, or a dangling link. The contents of the file are lost, which is
// reported.
func TestWhatIsInThePlaceOfAFileIsNotRead(t *testing.T) {
	for what, put := range map[string]func(t *testing.T, name string){
		"a folder": makeStranger,
		"a link":   func(t *testing.T, name string) { require.NoError(t, os.Symlink(name+".nothing", name)) },
	} {
		for n, values := range []int{2, 2, 1} {
			dir := t.TempDir()
			names := fill(t, dir, true)
			require.NoError(t, os.Remove(names[n]))
			put(t, names[n])
			var list []Damage
			s, err := Open(dir, Options{Counted: "b", Sync: true, Damaged: func(d Damage) { list = append(list, d) }})
			require.NoError(t, err, what)
			require.Len(t, list, 2, "%s for file %d", what, n)
			assert.Equal(t, Damage{File: names[n] + foreignSuffix + "1", Foreign: true}, list[0])
			assert.Equal(t, names[n], list[1].File)
			promised, ok := s.Promised()
			assert.True(t, ok)
			assert.Equal(t, 5, promised)
			assert.Len(t, contents(t, s), 5-values)
			require.NoError(t, s.Close(t.Context()))
		}
	}
}

// TestAFolderInTheWayOfTheNextFile is created while the log is in use.
func TestAFolderInTheWayOfTheNextFile(t *testing.T) {
	dir := t.TempDir()
	var list []Damage
	s, err := Open(dir, Options{Damaged: func(d Damage) { list = append(list, d) }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(t.Context())) })
	next := s.name(s.active().number + 1)
	makeStranger(t, next)
	for _, key := range []string{"a", "b", "c"} {
		require.NoError(t, s.Set(t.Context(), key, make([]byte, usual/2)))
	}
	require.Len(t, s.segments, 3)
	assert.Equal(t, []Damage{{File: next + foreignSuffix + "1", Foreign: true}}, list)
	assert.FileExists(t, filepath.Join(next+foreignSuffix+"1", "theirs"))
	assert.Len(t, contents(t, s), 3)
}

// TestAFolderWithTheNameOfWhatIsBesideTheLogStopsNoStart: the lock, and files that are useful to the log but not
// necessary.
func TestAFolderWithTheNameOfWhatIsBesideTheLogStopsNoStart(t *testing.T) {
	for _, name := range []string{lockName, reachedName, reserveName} {
		dir := t.TempDir()
		fill(t, dir, true)
		at := filepath.Join(dir, name)
		require.NoError(t, os.Remove(at))
		makeStranger(t, at)
		list, _ := told(t, dir, true)
		assert.Equal(t, []Damage{{File: at + foreignSuffix + "1", Foreign: true}}, list)
		assert.FileExists(t, filepath.Join(at+foreignSuffix+"1", "theirs"))
		assert.FileExists(t, at)
		assert.Len(t, contents(t, open(t, dir)), 5)
	}
}
