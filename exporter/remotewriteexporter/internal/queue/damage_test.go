// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/segments"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/internal/racetest"
)

// damagedStore opens a log, and returns its damages.
func damagedStore(t *testing.T, directory string) (store *segments.Store, told []segments.Damage) {
	t.Helper()
	store, err := segments.Open(directory, segments.Options{
		Counted: BlockPrefix, Damaged: func(d segments.Damage) { told = append(told, d) },
	})
	require.NoError(t, err)
	return store, told
}

// shaped returns a block of some size.
func shaped(r *rand.Rand, number, size int) block.Block {
	body := binary.LittleEndian.AppendUint64(nil, uint64(number))
	for len(body) < size {
		body = binary.LittleEndian.AppendUint64(body, r.Uint64())
	}
	return block.New(block.Header{Version: promwrite.V2, Samples: 1, RawSize: 2 * len(body), Shard: number % 3}, body)
}

// history has the files of a queue, and the blocks that wait in them.
type history struct {
	files   map[string][]byte
	waiting map[int]bool
}

// record runs a queue with blocks up to a size, and leaves it as a kill would.
func record(t *testing.T, seed uint64, most int, delivers bool) history {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 20))
	directory := t.TempDir()
	store, told := damagedStore(t, directory)
	require.Empty(t, told)
	q, _ := open(t, 1, 1<<20, stored(store))
	h := history{waiting: map[int]bool{}}
	number := 0
	for range 60 {
		blocks := make([]block.Block, 1+r.IntN(3))
		for i := range blocks {
			number++
			blocks[i] = shaped(r, number, 8+r.IntN(most))
			h.waiting[number] = true
		}
		push(t, q, 0, blocks...)
		for delivers && q.Stats(0).Blocks > 6 {
			l, err := q.Next(t.Context(), 0, Bound{})
			require.NoError(t, err)
			delete(h.waiting, numberOf(l.Blocks[0]))
			l.Done(nil)
		}
	}
	h.files = content(t, directory)
	require.NoError(t, q.Close(t.Context()))
	return h
}

// outcome is the result of a queue with damaged files.
type outcome struct {
	arrived, corrupt, lost int
	again                  int // blocks that had been delivered before
	torn                   bool
}

// open writes the files, opens a queue there, and takes everything it has.
func (h history) open(t *testing.T, files map[string][]byte) (o outcome) {
	t.Helper()
	directory, err := os.MkdirTemp(t.TempDir(), "")
	require.NoError(t, err)
	for name, b := range files {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), b, 0o600))
	}
	store, told := damagedStore(t, directory)
	o.torn = slices.ContainsFunc(told, func(d segments.Damage) bool { return d.Torn })
	q, dropped := open(t, 1, 1<<20, stored(store))
	o.corrupt, o.lost = dropped[ReasonCorrupt], dropped["lost"]
	seen := map[int]bool{}
	for _, n := range contents(t, q, 0) {
		require.False(t, seen[n], "block %d arrives twice", n)
		if seen[n] = true; h.waiting[n] {
			o.arrived++
		} else {
			o.again++
		}
	}
	require.NoError(t, q.Close(t.Context()))

	// Losses are counted once.
	store, told = damagedStore(t, directory)
	q, dropped = open(t, 1, 1<<20, stored(store))
	require.Empty(t, dropped, "%v", told)
	require.Empty(t, contents(t, q, 0))
	require.NoError(t, q.Close(t.Context()))
	require.NoError(t, os.RemoveAll(directory))
	return o
}

// TestWhatAPageTakesIsCounted: if any page of a log is wiped, also at its end, each block arrives or is counted as
// dropped, and no delivered block is.
func TestWhatAPageTakesIsCounted(t *testing.T) {
	racetest.Sequential(t)
	const page = 4096
	for most, step := range map[int]int{200: 512, 3000: 3 << 10, 20_000: 20 << 10} { // in bytes of blocks
		for _, delivers := range []bool{false, true} {
			t.Run(fmt.Sprintf("blocks of %d bytes, some delivered=%v", most, delivers), func(t *testing.T) {
				h := record(t, uint64(most), most, delivers)
				name := slices.Max(slices.Collect(maps.Keys(h.files)))
				if filepath.Ext(name) != ".log" {
					name = slices.Sorted(maps.Keys(h.files))[0]
				}
				whole := h.files[name]
				require.Greater(t, len(whole), 3*page)
				require.Equal(t, outcome{arrived: len(h.waiting)}, h.open(t, h.files))
				counted := 0
				for at := 0; at < len(whole); at += step {
					files := maps.Clone(h.files)
					damaged := bytes.Clone(whole)
					clear(damaged[at:min(at+page, len(damaged))])
					files[name] = damaged
					o := h.open(t, files)
					missing := len(h.waiting) - o.arrived
					counted += o.lost
					switch {
					case o.torn:
						t.Errorf("at %d of %d: all of it was confirmed", at, len(whole))
					case delivers: // a delivered block that is sent again may stand for a lost one if nothing says otherwise
						require.GreaterOrEqual(t, missing, o.corrupt+o.lost, "at %d: %+v", at, o)
						require.LessOrEqual(t, missing, o.corrupt+o.lost+o.again, "at %d: %+v", at, o)
					default:
						require.Equal(t, missing, o.corrupt+o.lost, "at %d: %+v", at, o)
					}
				}
				assert.Positive(t, counted, "no head was hit")
			})
		}
	}
}

// TestAFileThatIsGoneIsCounted: a log of several files, one of which is deleted or truncated.
func TestAFileThatIsGoneIsCounted(t *testing.T) {
	racetest.Sequential(t)
	h := record(t, 7, 400_000, false)
	var logs []string
	for name := range h.files {
		if filepath.Ext(name) == ".log" {
			logs = append(logs, name)
		}
	}
	slices.Sort(logs)
	require.Greater(t, len(logs), 2)
	gone := maps.Clone(h.files)
	delete(gone, logs[1])
	o := h.open(t, gone)
	require.Equal(t, len(h.waiting)-o.arrived, o.lost)
	require.Greater(t, o.lost, 10)

	short := maps.Clone(h.files)
	short[logs[0]] = short[logs[0]][:len(short[logs[0]])/2]
	o = h.open(t, short)
	require.Equal(t, len(h.waiting)-o.arrived, o.lost+o.corrupt)
	require.Greater(t, o.lost, 5)
}

// TestAnEndThatIsGoneIsCounted: the last files of a log are deleted, or the last one is truncated anywhere, also
// between two records. All data before that arrives.
func TestAnEndThatIsGoneIsCounted(t *testing.T) {
	racetest.Sequential(t)
	for _, delivers := range []bool{false, true} {
		h := record(t, 9, 400_000, delivers)
		logs := slices.Sorted(maps.Keys(h.files))
		logs = slices.DeleteFunc(logs, func(name string) bool { return filepath.Ext(name) != ".log" })
		require.Equal(t, !delivers, len(logs) > 2)
		require.Equal(t, outcome{arrived: len(h.waiting)}, h.open(t, h.files))
		check := func(what string, files map[string][]byte) {
			o := h.open(t, files)
			missing := len(h.waiting) - o.arrived
			require.False(t, o.torn, what)
			require.LessOrEqual(t, o.corrupt+o.lost, missing, "%s: %+v", what, o)
			require.LessOrEqual(t, missing, o.corrupt+o.lost+o.again, "%s: %+v", what, o)
			if !delivers {
				require.Zero(t, o.again)
			}
		}
		for n := range logs {
			files := maps.Clone(h.files)
			for _, name := range logs[n:] {
				delete(files, name)
			}
			check(fmt.Sprintf("from file %d of %d on", n, len(logs)), files)
		}
		last := logs[len(logs)-1]
		whole := h.files[last]
		for at := 0; at < len(whole); at += len(whole) / 23 {
			files := maps.Clone(h.files)
			files[last] = whole[:at]
			check(fmt.Sprintf("cut off at %d of %d", at, len(whole)), files)
			next := bytes.Index(whole[at:], []byte("\xb1god")) // record
			if next > 0 {
				files[last] = whole[:at+next]
				check(fmt.Sprintf("cut off between records, at %d of %d", at+next, len(whole)), files)
			}
		}
		delete(h.files, "reached") // as in an earlier version
		delete(h.files, last)
		require.Zero(t, h.open(t, h.files).lost)
	}
}

// TestWhatWasDeliveredOnAFullDiskIsNotLost: if a file was deleted while there was no room to record it, the expected
// number of blocks is unknown. Readable blocks arrive nevertheless, and damaged ones are counted.
func TestWhatWasDeliveredOnAFullDiskIsNotLost(t *testing.T) {
	racetest.Sequential(t)
	h := record(t, 7, 400_000, false)
	logs := slices.Sorted(maps.Keys(h.files))
	logs = slices.DeleteFunc(logs, func(name string) bool { return filepath.Ext(name) != ".log" })
	require.Greater(t, len(logs), 2)
	files := maps.Clone(h.files)
	delete(files, logs[0])
	damaged := bytes.Clone(files[logs[1]])
	damaged[len(damaged)/2] ^= 1
	files[logs[1]] = damaged
	o := h.open(t, files)
	require.Equal(t, 1, o.corrupt)
	require.Greater(t, o.lost, 5, "it was deleted, and nothing says why")

	files[logs[0]+".gone"] = nil
	require.Equal(t, outcome{arrived: o.arrived, corrupt: 1}, h.open(t, files))
}

// TestRoomIsBackWhenAllIsDelivered: with the last response, in much less than a second.
func TestRoomIsBackWhenAllIsDelivered(t *testing.T) {
	racetest.Sequential(t)
	const blocks, size = 64, 1 << 20
	r := rand.New(rand.NewPCG(1, 2))
	for _, sync := range []bool{false, true} {
		directory := t.TempDir()
		store, err := segments.Open(directory, segments.Options{Sync: sync, Counted: BlockPrefix})
		require.NoError(t, err)
		q, _ := open(t, 1, 1<<20, stored(store))
		for n := range blocks {
			push(t, q, 0, shaped(r, n, size))
		}
		taken := func() (bytes int) {
			for _, b := range content(t, directory) {
				bytes += len(b)
			}
			return bytes
		}
		require.Greater(t, taken(), blocks*size)
		for n := range blocks {
			require.Less(t, taken(), (blocks-n)*size+2*8<<20, "%d blocks are delivered", n)
			l, err := q.Next(t.Context(), 0, Bound{})
			require.NoError(t, err)
			l.Done(nil)
		}
		require.Less(t, taken(), 64<<10)
		require.NoError(t, q.Close(t.Context()))
	}
}
