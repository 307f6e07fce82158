// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"time"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// An entry is one block on its way to the destinations that still wait for it. A long queue on disk is many of them in
// memory, so of a block that is only stored it knows where it goes, and what is lost if it is dropped.
type entry struct {
	seq    uint64
	queued time.Time
	block  *held    // nil when it is only stored
	done   []string // destinations done with it

	epoch                          uint32
	tenant                         uint32 // its number in the queue
	size                           uint32
	samples, histograms, exemplars uint32
	shard, waiting                 uint16 // waiting: destinations not done with it
	only                           uint8  // the destination that it is for, counted from 1; 0 for all
	version                        promwrite.Version
	marked                         bool // whether the storage says who is done
	kept                           bool // whether Queue.retained counts the body
}

func newEntry(seq uint64, epoch uint32, queued time.Time, b block.Block) *entry {
	return &entry{
		seq: seq, epoch: epoch, queued: queued, block: &held{Block: b},
		shard: uint16(b.Shard), size: uint32(len(b.Body()) + entryOverhead), version: b.Version,
		samples: uint32(b.Samples), histograms: uint32(b.Histograms), exemplars: uint32(b.Exemplars),
	}
}

// isFor tells whether a destination is to have e, and is not done with it.
func (q *Queue) isFor(e *entry, destination int) bool {
	return (e.only == 0 || int(e.only) == destination+1) && !slices.Contains(e.done, q.cfg.Destinations[destination])
}

// isForAnyBefore tells whether a destination before this one is to have e, and is not done with it.
func (q *Queue) isForAnyBefore(e *entry, destination int) bool {
	for i := range destination {
		if q.isFor(e, i) {
			return true
		}
	}
	return false
}

// inMemoryOnly tells, of an entry of a queue with a storage, that it could not be stored.
func (e *entry) inMemoryOnly() bool { return e.block != nil && !e.kept }

// others is among those done with what is a copy for one destination: all others have had what is in it.
const others = "="

var copied = []string{others}

// hasMark says whether there is more to say of e than its block.
func (e *entry) hasMark() bool { return e.only != 0 || len(e.done) > 0 }

// adopt makes e what is for one destination only. If that is no longer there, and had it not, all there are get it rather than
// none: the series that it had are theirs now. But nobody gets a copy of what all have had.
func (q *Queue) adopt(e *entry, only string) {
	if at := slices.Index(q.cfg.Destinations, only); at >= 0 {
		e.only = uint8(at + 1)
	} else if slices.Contains(e.done, only) || slices.Contains(e.done, others) {
		e.done = slices.Clone(q.cfg.Destinations)
	}
}

// held is a block in memory.
type held struct {
	block.Block

	fate *Fate // of what was pushed with it; nil if nobody waits for it
}

// items is how many samples and histograms it has.
func (e *entry) items() int64 { return int64(e.samples) + int64(e.histograms) }

// fate is nil if nobody waits for it, as for what is stored.
func (e *entry) fate() *Fate {
	if e.block == nil {
		return nil
	}
	return e.block.fate
}

// known is the block as far as it is in memory: without a body, and with little of a header, when it is only stored.
func (e *entry) known() block.Block {
	if e.block != nil {
		return e.block.Block
	}
	return block.New(block.Header{
		Version: e.version, Shard: int(e.shard),
		Samples: int(e.samples), Histograms: int(e.histograms), Exemplars: int(e.exemplars),
	}, nil)
}
