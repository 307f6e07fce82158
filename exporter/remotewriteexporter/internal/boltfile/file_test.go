// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package boltfile

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// write calls change with a client of file_storage, closes it, and returns the name of its file.
func write(t testing.TB, change func(storage.Client)) (name string) {
	t.Helper()
	factory := filestorage.NewFactory()
	cfg := factory.CreateDefaultConfig().(*filestorage.Config)
	cfg.Directory = t.TempDir()
	e, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	client, err := e.(storage.Extension).GetClient(t.Context(), component.KindExporter, component.MustNewID("remotewrite"), "remotewrite")
	require.NoError(t, err)
	change(client)
	require.NoError(t, client.Close(context.Background()))
	return filepath.Join(cfg.Directory, "exporter_remotewrite__remotewrite")
}

// read returns everything in a file.
func read(t testing.TB, f *File) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, k := range f.Keys() {
		value, err := f.Get(k)
		require.NoError(t, err)
		all[k] = string(value)
	}
	return all
}

// change returns a function that sets and deletes values of all sizes, and returns those that are left.
func change(t testing.TB, r *rand.Rand, times int) func(storage.Client) map[string]string {
	return func(client storage.Client) map[string]string {
		twin := map[string]string{}
		for range times {
			var ops []*storage.Operation
			for range 1 + r.IntN(8) {
				k := fmt.Sprintf("b%016x", r.IntN(times))
				if r.IntN(3) == 0 {
					ops = append(ops, storage.DeleteOperation(k))
					delete(twin, k)
					continue
				}
				v := bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(1<<r.IntN(18)))
				ops = append(ops, storage.SetOperation(k, v))
				twin[k] = string(v)
			}
			require.NoError(t, client.Batch(t.Context(), ops...))
		}
		return twin
	}
}

// TestWhatFileStorageWroteIsRead: from files with a single page to those with several levels.
func TestWhatFileStorageWroteIsRead(t *testing.T) {
	for _, times := range []int{0, 1, 3, 30, 300, 3000} {
		var twin map[string]string
		name := write(t, func(client storage.Client) { twin = change(t, rand.New(rand.NewPCG(1, uint64(times))), times)(client) })
		f, err := Open(name)
		require.NoError(t, err)
		require.Equal(t, twin, read(t, f), "%d writes", times)
		require.Zero(t, f.Damaged())
		missing, err := f.Get("missing")
		require.NoError(t, err)
		require.Nil(t, missing)
		require.NoError(t, f.Remove())
		require.NoFileExists(t, name)
	}
}

func TestFileThatIsInUseIsLeftAlone(t *testing.T) {
	name := write(t, func(client storage.Client) {
		require.NoError(t, client.Set(t.Context(), "a", []byte("b")))
	})
	first, err := Open(name)
	require.NoError(t, err)
	_, err = Open(name)
	require.ErrorContains(t, err, "which another process may use")
	require.NoError(t, first.Close())
	second, err := Open(name)
	require.NoError(t, err)
	require.NoError(t, second.Close())

	_, err = Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestDamageCostsWhatIsDamaged: pages of zeros, flipped bits and a truncated file.
func TestDamageCostsWhatIsDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var twin map[string]string
	name := write(t, func(client storage.Client) { twin = change(t, r, 400)(client) })
	sound, err := os.ReadFile(name)
	require.NoError(t, err)
	lost := 0
	for n := range 200 {
		b := bytes.Clone(sound)
		switch n % 3 {
		case 0:
			page := (2 + r.IntN(len(b)/4096-2)) * 4096 // otherwise the file is as it was a transaction before
			clear(b[page : page+4096])
		case 1:
			b = b[:r.IntN(len(b))]
		default:
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		damaged := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(damaged, b, 0o600))
		f, err := Open(damaged)
		require.NoError(t, err)
		found := read(t, f)
		if n%3 < 2 && f.Damaged() == 0 && len(b) > 0 { // pages have no checksums: a flipped bit may hide values
			require.Len(t, found, len(twin), "what is missing is known to be")
		}
		lost += len(twin) - len(found)
		require.NoError(t, f.Remove())
		if f.Damaged() > 0 {
			require.FileExists(t, damaged+SetAside)
		} else {
			require.NoFileExists(t, damaged+SetAside)
		}
	}
	require.Positive(t, lost)
	require.Less(t, lost, 200*len(twin)/2, "most is found")
}

func FuzzOpen(f *testing.F) {
	for _, times := range []int{1, 10} {
		name := write(f, func(client storage.Client) { change(f, rand.New(rand.NewPCG(5, 6)), times)(client) })
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(b[:min(len(b), 64<<10)])
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		name := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(name, b, 0o600))
		file, err := Open(name)
		require.NoError(t, err)
		for k, v := range read(t, file) {
			require.LessOrEqual(t, len(k)+len(v), len(b))
		}
		require.NoError(t, file.Close())
	})
}
