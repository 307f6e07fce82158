// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"time"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// An entry is one queued block and the destinations that still need it. A long queue on disk has many entries in
// memory, so for a block that is only stored, an entry has just its destinations, and what is lost if it is dropped.
type entry struct {
	seq    uint64
	queued time.Time
	block  *held    // nil if it is only stored
	done   []string // destinations done with it

	epoch                          uint32
	tenant                         uint32 // number of the tenant
	size                           uint32
	samples, histograms, exemplars uint32
	shard, waiting                 uint16 // waiting: number of destinations not done with it
	only                           uint8  // the only destination that it is for, counted from 1; 0 for all
	version                        promwrite.Version
	marked                         bool // the storage has a record of who is done
	kept                           bool // Queue.retained counts the body
}

func newEntry(seq uint64, epoch uint32, queued time.Time, b block.Block) *entry {
	return &entry{
		seq: seq, epoch: epoch, queued: queued, block: &held{Block: b},
		shard: uint16(b.Shard), size: uint32(len(b.Body()) + entryOverhead), version: b.Version,
		samples: uint32(b.Samples), histograms: uint32(b.Histograms), exemplars: uint32(b.Exemplars),
	}
}

// isFor reports whether a destination must get e, and is not done with it.
func (q *Queue) isFor(e *entry, destination int) bool {
	return (e.only == 0 || int(e.only) == destination+1) && !slices.Contains(e.done, q.cfg.Destinations[destination])
}

// isForAnyBefore reports whether a destination before this one must get e, and is not done with it.
func (q *Queue) isForAnyBefore(e *entry, destination int) bool {
	for i := range destination {
		if q.isFor(e, i) {
			return true
		}
	}
	return false
}

// inMemoryOnly reports, in a queue with a storage, that an entry could not be stored.
func (e *entry) inMemoryOnly() bool { return e.block != nil && !e.kept }

// allOthers in the list of those done says that the entry is a copy for one destination: all others have had its content.
const allOthers = "="

var copied = []string{allOthers}

// hasMark reports whether the storage needs a record of e besides its block.
func (e *entry) hasMark() bool { return e.only != 0 || len(e.done) > 0 }

// adopt makes e an entry for one destination only. If that no longer exists, and had not received it, all existing ones
// get it rather than none, since they now get its series. But nobody gets a copy whose content all have had.
func (q *Queue) adopt(e *entry, only string) {
	if at := slices.Index(q.cfg.Destinations, only); at >= 0 {
		e.only = uint8(at + 1)
	} else if slices.Contains(e.done, only) || slices.Contains(e.done, allOthers) {
		e.done = slices.Clone(q.cfg.Destinations)
	}
}

// held is a block in memory.
type held struct {
	block.Block

	fate *Fate // of the blocks pushed with it; nil if nobody waits for it
}

// items is its number of samples and histograms.
func (e *entry) items() int64 { return int64(e.samples) + int64(e.histograms) }

// fate is nil if nobody waits for it, as for stored blocks.
func (e *entry) fate() *Fate {
	if e.block == nil {
		return nil
	}
	return e.block.fate
}

// known is the block as far as it is in memory: without a body, and with a partial header, if it is only stored.
func (e *entry) known() block.Block {
	if e.block != nil {
		return e.block.Block
	}
	return block.New(block.Header{
		Version: e.version, Shard: int(e.shard),
		Samples: int(e.samples), Histograms: int(e.histograms), Exemplars: int(e.exemplars),
	}, nil)
}
