// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// What is stored:
//
//	index             first and next sequence number. Blocks outside of [first, next) are not there; some inside
//	                  may be gone.
//	b<16 hex digits>  a block. Written in one batch with the index, so either all of a Push is there or nothing is;
//	                  where a storage's batches can be torn, the index comes last.
//	d<16 hex digits>  the destinations done with a block that others still wait for, and the one that it is for unless
//	                  that is all.
//	reserve<2 digits> nothing, written anew with each Push.
//
// A block is deleted when the last destination is done with it; nothing else needs to be written then. Some storages need
// room to delete, bbolt among them, which writes the pages that change to others. The reserve sees to that: once it is
// written, the pages that it had before are free, and no Push can have them unless it can have as many again. A deletion
// that failed nevertheless is noted, and made up for before anything else is written.
const (
	// BlockPrefix begins the keys of blocks.
	BlockPrefix = "b"

	indexKey   = "index"
	reserveKey = "reserve"
	reserves   = 16
	donePrefix = "d"

	indexSize    = 8 + 8 + 4
	preambleSize = 8 + 4 + 4
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errCorrupt = errors.New("checksum does not match")
	// reserve is as much as a page has room for in a value. A deletion may need a few pages: one for each level of the
	// tree, and their neighbours.
	reserve = make([]byte, 3<<10)
)

// isFull reports whether an error says that there is no room, however it is wrapped: bbolt keeps only the text of some.
func isFull(err error) bool {
	return errors.Is(err, storage.ErrStorageFull) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		err != nil && strings.Contains(err.Error(), syscall.ENOSPC.Error())
}

// disk reads and writes entries. mu serialises writes about finished blocks.
type disk struct {
	client storage.Client
	frees  bool // deletions need no space

	mu        sync.Mutex
	undeleted []*entry  // finished, but not deleted in the storage yet
	wait      bool      // a timer is set to try that again
	again     time.Time // when to try it together with the next finished entries
	// held is the number of stored bytes, room their limit; 0 until the storage was full.
	held, room int64
	probed     time.Time // when it was last found to be full
}

// hasRoom reports whether the given number of bytes may be stored as well. A storage that was full is not filled as far
// again until it has been half empty: deletions need space, too, and those of large blocks more than the reserve.
func (d *disk) hasRoom(need int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held < d.room/2 {
		d.room = 0
	}
	return d.room == 0 || d.held+need <= d.room
}

const (
	// probePause is how long a storage that was full counts as full although nothing was delivered since, and
	// mostProbed how much is written then to find out.
	probePause = 10 * time.Second
	mostProbed = 8 << 20
)

// hasRoomAgain reports whether a storage that was full has space again, as on a disk that others had filled: if a
// quarter of what is held can be written. That is then free again, for deletions.
func (d *disk) hasRoomAgain(ctx context.Context) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.probed) < probePause {
		return false
	}
	d.probed = time.Now()
	probe := make([]byte, min(d.held/4, mostProbed))
	for _, value := range [][]byte{probe, reserve} {
		if d.client.Batch(ctx, storage.SetOperation(reserveKey+"00", value)) != nil {
			return false
		}
	}
	d.room = 0
	return true
}

// stored records the result of a write of the given number of bytes.
func (d *disk) stored(need int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil:
		d.held += need
	case isFull(err) && !d.frees:
		d.room, d.probed = d.held/4*3, time.Now()
	}
}

func sizeOf(entries []*entry) (n int64) {
	for _, e := range entries {
		n += int64(e.size)
	}
	return n
}

// append writes entries and an index that covers them.
func (d *disk) append(ctx context.Context, first uint64, entries []*entry, destinations []string) error {
	ops := make([]*storage.Operation, 0, len(entries)+2)
	for _, e := range entries {
		ops = append(ops, storage.SetOperation(key(BlockPrefix, e.seq), appendEntry(nil, e)))
		if e.hasMark() {
			ops = append(ops, storage.SetOperation(key(donePrefix, e.seq), appendDone(nil, e, destinations)))
		}
	}
	next := entries[len(entries)-1].seq + 1
	for i := range reserves {
		if d.frees {
			break
		}
		ops = append(ops, storage.SetOperation(fmt.Sprintf("%s%02d", reserveKey, i), reserve))
	}
	ops = append(ops, storage.SetOperation(indexKey, indexOf(first, next)))
	need := sizeOf(entries)
	if !d.hasRoom(need) && !d.hasRoomAgain(ctx) {
		return fmt.Errorf("cannot store %d blocks: %w", len(entries), storage.ErrStorageFull)
	}
	err := d.client.Batch(ctx, ops...)
	d.stored(need, err)
	if err == nil {
		return nil
	}
	if isFull(err) && !errors.Is(err, storage.ErrStorageFull) {
		err = fmt.Errorf("%w: %w", storage.ErrStorageFull, err)
	}
	return fmt.Errorf("cannot store %d blocks: %w", len(entries), err)
}

func (d *disk) read(ctx context.Context, seq uint64) ([]byte, error) {
	return d.client.Get(ctx, key(BlockPrefix, seq))
}

// forgetOperations returns the operations that record that destinations are done with e, or delete it when all are.
func forgetOperations(e *entry, destinations []string) []*storage.Operation {
	if e.waiting > 0 {
		e.marked = true
		return []*storage.Operation{storage.SetOperation(key(donePrefix, e.seq), appendDone(nil, e, destinations))}
	}
	ops := []*storage.Operation{storage.DeleteOperation(key(BlockPrefix, e.seq))}
	if e.marked {
		ops = append(ops, storage.DeleteOperation(key(donePrefix, e.seq)))
	}
	return ops
}

func key(prefix string, seq uint64) string {
	digits := strconv.FormatUint(seq, 16)
	return prefix + strings.Repeat("0", 16-len(digits)) + digits
}

func parseKey(prefix, k string) (uint64, bool) {
	digits, ok := strings.CutPrefix(k, prefix)
	if !ok || len(digits) != 16 {
		return 0, false
	}
	seq, err := strconv.ParseUint(digits, 16, 64)
	return seq, err == nil && seq < mostBlocks
}

func indexOf(first, next uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, first)
	return appendChecksum(binary.LittleEndian.AppendUint64(b, next))
}

func parseIndex(b []byte) (first, next uint64, err error) {
	if len(b) != indexSize || !checksumMatches(b) {
		return 0, 0, errCorrupt
	}
	first, next = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if first > next {
		return 0, 0, errCorrupt
	}
	return first, next, nil
}

// appendEntry encodes when e was queued, its epoch, their checksum, and the block, which has a checksum of its own.
func appendEntry(dst []byte, e *entry) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(e.queued.UnixMilli()))
	dst = binary.LittleEndian.AppendUint32(dst, e.epoch)
	dst = appendChecksum(dst)
	return e.block.AppendTo(dst)
}

// parseEntry decodes what appendEntry encoded, all but the number.
func parseEntry(b []byte) (*entry, error) {
	if len(b) < preambleSize || !checksumMatches(b[:preambleSize]) {
		return nil, errCorrupt
	}
	parsed, err := block.Parse(b[preambleSize:])
	if err != nil {
		return nil, err
	}
	queued := time.UnixMilli(int64(binary.LittleEndian.Uint64(b)))
	return newEntry(0, binary.LittleEndian.Uint32(b[8:]), queued, parsed), nil
}

// salvage returns what can still be read about its block from a stored entry that cannot be decoded; zero if that is
// nothing.
func salvage(b []byte) block.Header {
	if len(b) < preambleSize {
		return block.Header{}
	}
	h, _ := block.Salvage(b[preambleSize:])
	return h
}

// onlyFor precedes the name of the destination that a block is for; no name begins with it.
const onlyFor = "+"

// appendDone and parseDone use one byte for a name's length, so names of destinations are short.
func appendDone(dst []byte, e *entry, destinations []string) []byte {
	if e.only != 0 {
		name := destinations[e.only-1]
		dst = append(append(dst, byte(len(onlyFor)+len(name))), onlyFor...)
		dst = append(dst, name...)
	}
	for _, name := range e.done {
		dst = append(append(dst, byte(len(name))), name...)
	}
	return dst
}

func parseDone(b []byte) (done []string, only string) {
	for len(b) > 0 && len(b) > int(b[0]) {
		n := 1 + int(b[0])
		if name, is := strings.CutPrefix(string(b[1:n]), onlyFor); is {
			only = name
		} else {
			done = append(done, name)
		}
		b = b[n:]
	}
	return done, only
}

func appendChecksum(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func checksumMatches(b []byte) bool {
	n := len(b) - 4
	return binary.LittleEndian.Uint32(b[n:]) == crc32.Checksum(b[:n], castagnoli)
}
