// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{Counted: "b", Damaged: func(d Damage) { t.Errorf("%d bytes of %s are damaged", d.Bytes, d.File) }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(t.Context())) })
	return s
}

// contents returns all values.
func contents(t testing.TB, s *Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range s.Keys() {
		value, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		all[key] = string(value)
	}
	return all
}

// files returns the names of the files in a directory.
func files(t testing.TB, dir string) (names []string, size int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		if filepath.Ext(e.Name()) == suffix {
			names = append(names, e.Name())
			size += info.Size()
		}
	}
	return names, size
}

// TestItIsAMap: with any operations, also after it was opened again, it contains the same as a map; and the files
// contain little more.
func TestItIsAMap(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		s := open(t, dir)
		twin := map[string]string{}
		for range 400 {
			var ops []*storage.Operation
			staged := maps.Clone(twin)
			want := map[*storage.Operation][]byte{}
			for range 1 + r.IntN(6) {
				key := fmt.Sprint("key ", r.IntN(40))
				switch r.IntN(4) {
				case 0:
					op := storage.GetOperation(key)
					if v, ok := staged[key]; ok {
						want[op] = []byte(v)
					} else {
						want[op] = nil
					}
					ops = append(ops, op)
				case 1:
					ops = append(ops, storage.DeleteOperation(key))
					delete(staged, key)
				default:
					value := bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(1<<r.IntN(20)))
					ops = append(ops, storage.SetOperation(key, value))
					staged[key] = string(value)
				}
			}
			require.NoError(t, s.Batch(t.Context(), ops...))
			for op, v := range want {
				require.Equal(t, string(v), string(op.Value))
			}
			twin = staged
			if r.IntN(20) == 0 {
				require.NoError(t, s.Close(t.Context()))
				s = open(t, dir)
			}
			live := int64(0)
			for _, v := range twin {
				live += int64(len(v))
			}
			require.Equal(t, live, s.live)
			_, size := files(t, dir)
			require.Equal(t, s.Size(), size)
			require.LessOrEqual(t, size, 3*live+7*usual)
		}
		require.Equal(t, twin, contents(t, s))
	}
}

// TestWhatIsDeletedTakesNoRoom: files are deleted with the last of their values, in whatever way they were written.
func TestWhatIsDeletedTakesNoRoom(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	value := make([]byte, 1<<20)
	for i := range 100 {
		require.NoError(t, s.Set(t.Context(), "index", []byte{byte(i)}))
		require.NoError(t, s.Set(t.Context(), fmt.Sprint(i), value))
	}
	_, size := files(t, dir)
	require.Greater(t, size, int64(100<<20))
	for i := range 100 {
		require.NoError(t, s.Delete(t.Context(), fmt.Sprint(i)))
	}
	names, size := files(t, dir)
	assert.Less(t, size, int64(2*usual))
	assert.LessOrEqual(t, len(names), 2)
	require.Equal(t, map[string]string{"index": "c"}, contents(t, s))
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, map[string]string{"index": "c"}, contents(t, open(t, dir)))
}

// TestWhatIsDeletedStaysSo: the record of a deletion is kept as long as the value.
func TestWhatIsDeletedStaysSo(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	require.NoError(t, s.Set(t.Context(), "old", make([]byte, few)))
	require.NoError(t, s.Set(t.Context(), "gone", make([]byte, few)))
	for i := range 10 {
		require.NoError(t, s.Set(t.Context(), fmt.Sprint(i), make([]byte, usual-1)))
	}
	require.NoError(t, s.Delete(t.Context(), "gone"))
	for i := range 10 {
		require.NoError(t, s.Delete(t.Context(), fmt.Sprint(i)))
	}
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, []string{"old"}, slices.Collect(maps.Keys(contents(t, open(t, dir)))))
}

// TestATornEndIsPassedOver: the rest of a record that was not acknowledged before a kill is ignored, wherever it was
// cut.
func TestATornEndIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	require.NoError(t, s.Set(t.Context(), "a", []byte("first")))
	before := s.Size()
	require.NoError(t, s.Batch(t.Context(), storage.SetOperation("a", []byte("second")), storage.SetOperation("b", []byte("third"))))
	require.NoError(t, s.Close(t.Context()))
	names, _ := files(t, dir)
	whole, err := os.ReadFile(filepath.Join(dir, names[0]))
	require.NoError(t, err)
	for at := before; at < int64(len(whole)); at++ {
		torn := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(torn, names[0]), whole[:at], 0o600))
		s := open(t, torn)
		require.Equal(t, map[string]string{"a": "first"}, contents(t, s), "cut at %d of %d", at, len(whole))
		require.NoError(t, s.Set(t.Context(), "c", []byte("fourth")))
		require.NoError(t, s.Close(t.Context()))
		require.Equal(t, map[string]string{"a": "first", "c": "fourth"}, contents(t, open(t, torn)))
	}
}

// TestDamageCostsWhatIsDamaged: all other values can be read, losses are reported, and the file is kept for inspection.
func TestDamageCostsWhatIsDamaged(t *testing.T) {
	const values, size = 64, 1 << 12
	for name, damage := range map[string]func([]byte) []byte{
		"a page of zeros": func(b []byte) []byte { clear(b[len(b)/2 : len(b)/2+4096]); return b },
		"a flipped bit":   func(b []byte) []byte { b[len(b)/2] ^= 8; return b },
		"the beginning":   func(b []byte) []byte { clear(b[:5000]); return b },
		"cut in half":     func(b []byte) []byte { return b[:len(b)/2] },
		"everything":      func(b []byte) []byte { clear(b); return b },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			twin := map[string]string{}
			for i := range values {
				value := bytes.Repeat([]byte{byte(i)}, size)
				twin[fmt.Sprint(i)] = string(value)
				require.NoError(t, s.Set(t.Context(), fmt.Sprint(i), value))
			}
			require.NoError(t, s.Close(t.Context()))
			names, _ := files(t, dir)
			file := filepath.Join(dir, names[0])
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, damage(b), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "0000000000000002"+suffix), nil, 0o600)) // it is not the last file

			told := int64(0)
			s, err = Open(dir, Options{Damaged: func(d Damage) {
				require.Equal(t, file, d.File)
				told += d.Bytes
			}})
			require.NoError(t, err)
			require.Positive(t, told)
			require.FileExists(t, file+damagedSuffix)
			found := 0
			for key, value := range contents(t, s) {
				if twin[key] == value {
					found++
				}
			}
			most := values - 3
			switch name {
			case "cut in half":
				most = values/2 - 1
			case "everything":
				most = 0
			}
			require.GreaterOrEqual(t, found, most)
			require.NoError(t, s.Set(t.Context(), "new", []byte("value")))
			require.NoError(t, s.Close(t.Context()))
		})
	}
}

// TestAnEmptyFileIsDamage, unless it is the last. A process that starts and writes nothing leaves none behind.
func TestAnEmptyFileIsDamage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	value := make([]byte, usual-1)
	for i := range 3 {
		require.NoError(t, s.Set(t.Context(), fmt.Sprint("b", i), value))
		require.NoError(t, s.Close(t.Context()))
		for range 3 {
			s = open(t, dir)
			require.NoError(t, s.Close(t.Context()))
		}
		s = open(t, dir)
	}
	require.NoError(t, s.Close(t.Context()))
	names, _ := files(t, dir)
	require.Len(t, names, 4)
	require.NoError(t, os.Truncate(filepath.Join(dir, names[1]), 0))
	var told []Damage
	s, err := Open(dir, Options{Counted: "b", Damaged: func(d Damage) { told = append(told, d) }})
	require.NoError(t, err)
	require.Equal(t, []Damage{{File: filepath.Join(dir, names[1])}}, told)
	promised, ok := s.Promised()
	require.True(t, ok)
	require.Equal(t, 3, promised)
	require.Len(t, contents(t, s), 2)
	require.NoError(t, s.Close(t.Context()))
}

func TestNobodyElseUsesTheFolder(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, err := Open(dir, Options{})
	require.ErrorContains(t, err, "another process may use")
	require.NoError(t, s.Close(t.Context()))
	require.Error(t, s.Set(t.Context(), "a", nil))
	open(t, dir)
}

// TestFilesOfOthersAreLeftAlone: other files may also have a number as their name.
func TestFilesOfOthersAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	require.NoError(t, s.Set(t.Context(), "key", []byte("value")))
	require.NoError(t, s.Close(t.Context()))
	strangers := []string{"feed.log", "1.log", "00000000000000AB.log", "0000000000000001"}
	for _, name := range strangers {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("a stranger's"), 0o600))
	}
	s = open(t, dir)
	require.Equal(t, map[string]string{"key": "value"}, contents(t, s))
	require.NoError(t, s.Set(t.Context(), "key", []byte("another")))
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, map[string]string{"key": "another"}, contents(t, open(t, dir)))
	for _, name := range strangers {
		require.FileExists(t, filepath.Join(dir, name))
	}
}
