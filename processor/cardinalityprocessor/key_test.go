// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/store"
)

// anew returns a rig with a key of its own, like a process that finds none.
func anew(t *testing.T, host *memory) (*rig, *observer.ObservedLogs) {
	r := newRig(t, withStorage(func(c *Config) { c.Memory.MaxSeries = 2 }))
	r.Hash = ident.NewHasher(store.NewKey())
	core, logs := observer.New(zap.InfoLevel)
	r.Logger = zap.New(core)
	require.NoError(t, r.begin(host))
	return r, logs
}

func TestEveryProcessHasAKeyOfItsOwn(t *testing.T) {
	seen := map[uint64]bool{}
	for range 100 {
		seen[store.NewKey().Word(0)] = true
	}
	require.Len(t, seen, 100)
}

func TestTheKeyOutlivesARestart(t *testing.T) {
	host := newMemory()
	before, _ := anew(t, host)
	require.Equal(t, []bool{true, true, false}, before.passes(aSeries(1), aSeries(2), aSeries(3)))
	require.NoError(t, before.shutdown(t.Context()))

	after, logs := anew(t, host)
	require.Equal(t, before.Hash, after.Hash)
	require.Equal(t, []bool{false, true, true}, after.passes(aSeries(3), aSeries(2), aSeries(1)), "who had a place has it")
	require.Zero(t, logs.Len())
}

// TestWhatIsOfAnotherKeyIsLeftOut: fingerprints with another key belong to no series, and would only take places.
func TestWhatIsOfAnotherKeyIsLeftOut(t *testing.T) {
	for name, change := range map[string]func(*memory){
		"no key":         func(m *memory) { delete(m.data, store.SnapshotKeyOf) },
		"another key":    func(m *memory) { m.data[store.SnapshotKeyOf] = store.AppendKey(nil, store.NewKey()) },
		"a damaged key":  func(m *memory) { m.data[store.SnapshotKeyOf][len(store.KeyMagic)] ^= 1 },
		"half a key":     func(m *memory) { m.data[store.SnapshotKeyOf] = m.data[store.SnapshotKeyOf][:len(store.KeyMagic)+4] },
		"before the key": func(m *memory) { m.withoutKey() },
	} {
		t.Run(name, func(t *testing.T) {
			host := newMemory()
			before, _ := anew(t, host)
			require.Equal(t, []bool{true, true}, before.passes(aSeries(1), aSeries(2)))
			require.NoError(t, before.shutdown(t.Context()))
			change(host)

			after, logs := anew(t, host)
			require.Equal(t, []bool{true, true, false}, after.passes(aSeries(3), aSeries(2), aSeries(1)))
			require.Equal(t, 1, logs.FilterMessageSnippet("another key").Len())
			require.NoError(t, after.shutdown(t.Context()))

			again, logs := anew(t, host)
			require.Equal(t, []bool{false, true, true}, again.passes(aSeries(1), aSeries(2), aSeries(3)))
			require.Zero(t, logs.Len())
		})
	}
}

// withoutKey converts the data to the format of versions without a key.
func (m *memory) withoutKey() {
	delete(m.data, store.SnapshotKeyOf)
	for name, value := range m.data {
		m.data[name] = value[store.KeyMarkSize:]
	}
}

// TestNothingIsSavedBeforeTheKey: without it, the data would be worthless after a restart.
func TestNothingIsSavedBeforeTheKey(t *testing.T) {
	host := newMemory()
	keyed, err := store.Open(t.Context(), host, store.NewKey())
	require.NoError(t, err)
	host.broken = errors.New("disk full")
	require.ErrorContains(t, keyed.Set(t.Context(), "a", []byte("b")), "cannot save the key: disk full")
	_, err = store.Open(t.Context(), host, store.NewKey())
	require.ErrorContains(t, err, "cannot read the key: disk full")
	host.broken = nil
	require.Empty(t, host.data)
	require.NoError(t, keyed.Set(t.Context(), "a", []byte("b")))
	require.Contains(t, host.data, store.SnapshotKeyOf)
	other, err := store.Open(t.Context(), host, store.NewKey())
	require.NoError(t, err)
	require.Equal(t, keyed.Key, other.Key)
	got, err := other.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "b", string(got))
}
