// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const fullDevice = "/dev/full" // on which writes fail

// TestADiskThatTakesTheLogAlone: if the log can be written, but not the file with its length, that file is outdated
// from some time on. No loss is reported, and nothing is lost, whenever the process is killed.
func TestADiskThatTakesTheLogAlone(t *testing.T) {
	for _, sync := range []bool{false, true} {
		for seed := range uint64(4) {
			r := rand.New(rand.NewPCG(seed, 3))
			dir := t.TempDir()
			options := Options{Counted: "b", Sync: sync, Damaged: func(d Damage) { t.Errorf("%+v is told", d) }}
			s, err := Open(dir, options)
			require.NoError(t, err)
			want := map[string]string{}
			stuckFrom := r.IntN(40)
			for n := range 120 {
				if n == stuckFrom {
					require.NoError(t, s.reached.Close())
					s.reached, err = os.OpenFile(fullDevice, os.O_RDWR, 0)
					require.NoError(t, err)
				}
				if keys := slices.Sorted(maps.Keys(want)); len(keys) > 0 && (r.IntN(5) < 2 || len(keys) > 20) {
					key := keys[0] // mostly, like a queue
					if r.IntN(4) == 0 {
						key = keys[r.IntN(len(keys))]
					}
					require.NoError(t, s.Delete(t.Context(), key))
					delete(want, key)
				} else {
					key, value := fmt.Sprintf("b%03d", n), fmt.Sprintf("%*d", 1+r.IntN(1<<20), n)
					require.NoError(t, s.Set(t.Context(), key, []byte(value)))
					want[key] = value
				}
				if n%10 > 0 {
					continue
				}
				killed := filepath.Join(t.TempDir(), "killed")
				require.NoError(t, os.CopyFS(killed, os.DirFS(dir)))
				after, err := Open(killed, options)
				require.NoError(t, err)
				promised, ok := after.Promised()
				require.True(t, ok)
				require.Equal(t, len(want), promised)
				require.False(t, after.IsDamaged())
				require.Equal(t, want, contents(t, after))
				require.NoError(t, after.Close(t.Context()))
				require.NoError(t, os.RemoveAll(killed))
			}
			require.NoError(t, s.Close(t.Context()))
		}
	}
}

// TestAnOldEndGoesWhereANewOneCannotBe: it might be ahead of a log that has lost its end before.
func TestAnOldEndGoesWhereANewOneCannotBe(t *testing.T) {
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	dir := t.TempDir()
	names := fill(t, dir, true)
	name := filepath.Join(dir, reachedName)
	require.NoError(t, os.Remove(names[2]))
	var told []Damage
	options := Options{Counted: "b", Sync: true, Damaged: func(d Damage) { told = append(told, d) }}
	limited(t, &was, 0, func() { // the limit on the size of files
		s, err := Open(dir, options)
		require.NoError(t, err)
		require.Len(t, told, 1)
		require.NoFileExists(t, name)
		require.NoError(t, s.Close(t.Context()))
	})
	s, err := Open(dir, options)
	require.NoError(t, err)
	require.Len(t, told, 1, "it is told once")
	require.FileExists(t, name)
	require.NoError(t, s.Close(t.Context()))
}
