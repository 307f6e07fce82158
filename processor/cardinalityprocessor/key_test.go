// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// anew is a rig with a key of its own, as every process has one that finds none.
func anew(t *testing.T, host *memory) (*rig, *observer.ObservedLogs) {
	r := newRig(t, withStorage(func(c *Config) { c.Memory.MaxSeries = 2 }))
	r.hash = newHasher(newKey())
	core, logs := observer.New(zap.InfoLevel)
	r.logger = zap.New(core)
	require.NoError(t, r.begin(host))
	return r, logs
}

func TestEveryProcessHasAKeyOfItsOwn(t *testing.T) {
	seen := map[uint64]bool{}
	for range 100 {
		seen[newKey().Word(0)] = true
	}
	require.Len(t, seen, 100)
}

func TestTheKeyOutlivesARestart(t *testing.T) {
	host := newMemory()
	before, _ := anew(t, host)
	require.Equal(t, []bool{true, true, false}, before.passes(series(1), series(2), series(3)))
	require.NoError(t, before.shutdown(t.Context()))

	after, logs := anew(t, host)
	require.Equal(t, before.hash, after.hash)
	require.Equal(t, []bool{false, true, true}, after.passes(series(3), series(2), series(1)), "who had a place has it")
	require.Zero(t, logs.Len())
}

// TestWhatIsOfAnotherKeyIsLeftOut: fingerprints of another key are nobody's, and would only take places.
func TestWhatIsOfAnotherKeyIsLeftOut(t *testing.T) {
	for name, change := range map[string]func(*memory){
		"no key":         func(m *memory) { delete(m.data, snapshotKeyOf) },
		"another key":    func(m *memory) { m.data[snapshotKeyOf] = appendKey(nil, newKey()) },
		"a damaged key":  func(m *memory) { m.data[snapshotKeyOf][len(keyMagic)] ^= 1 },
		"half a key":     func(m *memory) { m.data[snapshotKeyOf] = m.data[snapshotKeyOf][:len(keyMagic)+4] },
		"before the key": func(m *memory) { m.withoutKey() },
	} {
		t.Run(name, func(t *testing.T) {
			host := newMemory()
			before, _ := anew(t, host)
			require.Equal(t, []bool{true, true}, before.passes(series(1), series(2)))
			require.NoError(t, before.shutdown(t.Context()))
			change(host)

			after, logs := anew(t, host)
			require.Equal(t, []bool{true, true, false}, after.passes(series(3), series(2), series(1)))
			require.Equal(t, 1, logs.FilterMessageSnippet("of another key").Len())
			require.NoError(t, after.shutdown(t.Context()))

			again, logs := anew(t, host)
			require.Equal(t, []bool{false, true, true}, again.passes(series(1), series(2), series(3)))
			require.Zero(t, logs.Len())
		})
	}
}

// withoutKey makes the data what versions without a key have left.
func (m *memory) withoutKey() {
	delete(m.data, snapshotKeyOf)
	for name, value := range m.data {
		m.data[name] = value[keyMarkSize:]
	}
}

// TestNothingIsSavedBeforeTheKey, or it would be worth nothing after a restart.
func TestNothingIsSavedBeforeTheKey(t *testing.T) {
	host := newMemory()
	keyed, err := openKeyed(t.Context(), host, newKey())
	require.NoError(t, err)
	host.broken = errors.New("disk full")
	require.ErrorContains(t, keyed.Set(t.Context(), "a", []byte("b")), "cannot save the key: disk full")
	_, err = openKeyed(t.Context(), host, newKey())
	require.ErrorContains(t, err, "cannot read the key: disk full")
	host.broken = nil
	require.Empty(t, host.data)
	require.NoError(t, keyed.Set(t.Context(), "a", []byte("b")))
	require.Contains(t, host.data, snapshotKeyOf)
	other, err := openKeyed(t.Context(), host, newKey())
	require.NoError(t, err)
	require.Equal(t, keyed.key, other.key)
	got, err := other.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "b", string(got))
}
