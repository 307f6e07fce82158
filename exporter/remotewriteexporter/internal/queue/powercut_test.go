// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/segments"
)

const (
	// powerCutsVariable sets how often TestPowerCuts cuts the power, and powerSeedVariable the seed: many cuts may be
	// made in several runs.
	powerCutsVariable = "GODWIT_POWER_CUTS"
	powerSeedVariable = "GODWIT_POWER_SEED"
	fewPowerCuts      = 25
	usualPowerSeed    = 11

	pageSize   = 4096
	sectorSize = 512
	// metaPages are the first pages of the file. The storage writes one of them last, once all others are on the disk.
	metaPages = 2
)

var errPowerCut = errors.New("the power is cut")

// engine is a storage with fsync, and a model of what a power cut leaves of its files.
type engine struct {
	open func(t *testing.T, directory string) (client storage.Client, end func())
	// cut returns files that a power cut may leave during a write, given the files before and after it.
	cut func(r *rand.Rand, before, after map[string][]byte) map[string][]byte
}

var engines = map[string]engine{
	"file_storage": {openFiles, cutPages},
	"directory":    {openSegments, cutLog},
}

func openFiles(t *testing.T, directory string) (storage.Client, func()) {
	t.Helper()
	factory := filestorage.NewFactory()
	cfg := factory.CreateDefaultConfig().(*filestorage.Config)
	cfg.Directory, cfg.FSync = directory, true
	e, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), nil))
	client, err := e.(storage.Extension).GetClient(t.Context(), component.KindExporter, component.MustNewID("power"), "queue")
	require.NoError(t, err)
	return client, func() {
		require.NoError(t, client.Close(t.Context()))
		require.NoError(t, e.Shutdown(t.Context()))
	}
}

func openSegments(t *testing.T, directory string) (storage.Client, func()) {
	t.Helper()
	store, err := segments.Open(directory, segments.Options{
		Sync: true, Counted: BlockPrefix,
		Damaged: func(d segments.Damage) {
			if !d.Torn { // whose write was not acknowledged
				t.Errorf("%d bytes of %s are damaged", d.Bytes, d.File)
			}
		},
	})
	require.NoError(t, err)
	return store, func() { require.NoError(t, store.Close(t.Context())) }
}

// content reads the files of a directory.
func content(t *testing.T, directory string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	all := map[string][]byte{}
	for _, e := range entries {
		all[e.Name()], err = os.ReadFile(filepath.Join(directory, e.Name()))
		require.NoError(t, err)
	}
	return all
}

// cutPages is for a file of pages in which new pages are written first, and then, once they are on the disk, a meta
// page.
func cutPages(r *rand.Rand, before, after map[string][]byte) map[string][]byte {
	image := map[string][]byte{}
	for name, now := range after {
		data := r.IntN(2) == 0 // otherwise all data is on the disk, and the meta page is being written
		was := bytes.Clone(before[name])
		if !data {
			was = append(was[:metaPages*pageSize], now[metaPages*pageSize:]...)
		} else if len(now) > len(was) && r.IntN(2) == 0 { // the file may have grown without its new contents
			was = append(was, make([]byte, len(now)-len(was))...)
		}
		torn(r, was, now, func(at int) bool { return (at < metaPages*pageSize) != data })
		image[name] = was
	}
	return image
}

// notWaitedFor is the file of a log that contains its written length: it is written later, without fsync.
const notWaitedFor = "reached"

// cutLog is for files that are appended to, and deleted once that is on the disk: the oldest first.
func cutLog(r *rand.Rand, before, after map[string][]byte) map[string][]byte {
	image := map[string][]byte{}
	if r.IntN(2) == 0 { // appended data is on the disk, and some deletions may be, too
		maps.Copy(image, after)
		if r.IntN(2) == 0 {
			image[notWaitedFor] = before[notWaitedFor]
		}
		gone := slices.DeleteFunc(slices.Sorted(maps.Keys(before)), func(name string) bool { return after[name] != nil })
		for _, name := range gone[r.IntN(len(gone)+1):] {
			image[name] = before[name]
		}
		return image
	}
	maps.Copy(image, before)
	last := slices.Max(slices.DeleteFunc(slices.Collect(maps.Keys(after)), func(name string) bool { return filepath.Ext(name) != ".log" }))
	for name, now := range after {
		was, ok := before[name]
		if name != last {
			if name != notWaitedFor {
				image[name] = now
			}
			continue
		}
		if len(was) >= len(now) || !ok && r.IntN(4) == 0 {
			continue
		}
		begin, end := oneRecord(r, now, len(was))
		grown := end - begin
		if r.IntN(4) > 0 {
			grown = r.IntN(grown + 1)
		}
		made := append(bytes.Clone(now[:begin]), make([]byte, grown)...)
		torn(r, made[begin:], now[begin:end], func(int) bool { return true })
		image[name] = made
	}
	return image
}

// oneRecord returns the log up to one of the appended records, of which there are two if values were copied: each is on
// the disk before the next is written.
func oneRecord(r *rand.Rand, log []byte, from int) (begin, end int) {
	const head = 12 // a marker, the length of the content, and a checksum
	var ends []int
	for end = from; end < len(log); {
		end += head + int(binary.LittleEndian.Uint32(log[end+4:]))
		ends = append(ends, end)
	}
	n := r.IntN(len(ends))
	if n > 0 {
		from = ends[n-1]
	}
	return from, ends[n]
}

// torn writes some of the new sectors, and parts of others.
func torn(r *rand.Rand, image, after []byte, may func(at int) bool) {
	odds := r.IntN(5)
	for at := 0; at < min(len(after), len(image)); at += sectorSize {
		if !may(at) || r.IntN(4) >= odds {
			continue
		}
		n := min(sectorSize, len(after)-at, len(image)-at)
		if r.IntN(8) == 0 {
			n = r.IntN(n + 1)
		}
		copy(image[at:at+n], after[at:at+n])
	}
}

// mains is a client whose power is cut in one of its writes. The disk then has what it had before, with any part of
// what was being written: whole sectors, and parts of some, in any order, of data that was not synced, and nothing of
// data that was to be written after an unfinished sync.
type mains struct {
	storage.Client

	t         *testing.T
	random    *rand.Rand
	engine    engine
	directory string
	left      int // writes until the power cut
	image     map[string][]byte
}

// FreesWithoutRoom forwards to the client.
func (m *mains) FreesWithoutRoom() bool {
	f, ok := m.Client.(interface{ FreesWithoutRoom() bool })
	return ok && f.FreesWithoutRoom()
}

func (m *mains) Batch(ctx context.Context, ops ...*storage.Operation) error {
	if m.image != nil {
		return errPowerCut
	}
	if !slices.ContainsFunc(ops, func(op *storage.Operation) bool { return op.Type != storage.Get }) {
		return m.Client.Batch(ctx, ops...)
	}
	if m.left--; m.left > 0 {
		return m.Client.Batch(ctx, ops...)
	}
	before := content(m.t, m.directory)
	require.NoError(m.t, m.Client.Batch(ctx, ops...))
	m.image = m.engine.cut(m.random, before, content(m.t, m.directory))
	return errPowerCut
}

// TestPowerCuts: whatever a power cut leaves of a write, all acknowledged data is there, in order, and of the delivered
// data at most the last request of each shard is sent again. With fsync, for which file_storage is configured.
func TestPowerCuts(t *testing.T) {
	cuts, seed := numberIn(t, powerCutsVariable, fewPowerCuts), numberIn(t, powerSeedVariable, usualPowerSeed)
	for name, e := range engines {
		t.Run(name, func(t *testing.T) { powerCuts(t, e, cuts, seed) })
	}
}

func numberIn(t *testing.T, variable string, usual int) int {
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

func powerCuts(t *testing.T, e engine, cuts, seed int) {
	const shards = 2
	random := rand.New(rand.NewPCG(uint64(seed), 12))
	directory := t.TempDir()
	number := 0
	acknowledged := map[int]bool{} // not delivered, or not known to be
	delivered := map[int]bool{}
	again, done := 0, 0
	for cut := range cuts + 1 {
		client, end := e.open(t, directory)
		m := &mains{Client: client, t: t, random: random, engine: e, directory: directory, left: 1 + random.IntN(12)}
		if cut == cuts {
			m.left = 1 << 30
		}
		q, err := Open(t.Context(), Config{
			Destinations: []string{"a"}, Policy: Policy{Size: 1 << 30}, Storage: m,
			Dropped:       func(_ int, reason string, _ block.Header) { t.Errorf("cut %d: dropped for %s", cut, reason) },
			Lost:          func(blocks int) { t.Errorf("cut %d: %d blocks are said to be lost", cut, blocks) },
			StorageFailed: func(error) {},
		})
		if m.image == nil {
			require.NoError(t, err)
			epoch := q.NextEpoch()
			last := [shards]int{}
			came := [shards]int{}
			for m.image == nil && (cut < cuts || q.Stats(0).Blocks > 0) {
				if cut < cuts && random.IntN(2) == 0 {
					blocks := make([]block.Block, 1+random.IntN(shards))
					for i := range blocks {
						number++
						blocks[i] = blockOf(number, i)
					}
					if q.Push(t.Context(), epoch, blocks, nil) == nil {
						for _, b := range blocks {
							acknowledged[numberOf(b)] = true
						}
					}
					continue
				}
				if q.Stats(0).Blocks == 0 {
					continue
				}
				l, err := q.Next(t.Context(), 0, Bound{})
				if err != nil {
					break
				}
				n, shard := numberOf(l.Blocks[0]), l.Blocks[0].Shard
				require.Greater(t, n, last[shard], "cut %d: in order", cut)
				last[shard] = n
				if delivered[n] {
					again++
					came[shard]++
					require.LessOrEqual(t, came[shard], 1, "cut %d: of shard %d", cut, shard)
				}
				delete(acknowledged, n)
				delivered[n] = true
				l.Done(nil)
			}
			if m.image == nil {
				require.NoError(t, q.Close(t.Context()))
			}
		}
		end()
		if m.image == nil {
			continue
		}
		done++
		directory = t.TempDir()
		for name, b := range m.image {
			require.NoError(t, os.WriteFile(filepath.Join(directory, name), b, 0o600))
		}
		require.NoError(t, os.RemoveAll(m.directory))
	}
	require.Empty(t, acknowledged)
	require.Equal(t, cuts, done)
	t.Logf("%d power cuts, %d blocks, %d of them came again", done, number, again)
}
