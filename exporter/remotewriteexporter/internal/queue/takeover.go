// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Earlier is a storage of an earlier version, with the blocks that a queue left there. It is only read.
type Earlier interface {
	// Keys returns the keys of all values.
	Keys() []string
	// Get returns nil if there is no value.
	Get(key string) ([]byte, error)
	// Remove deletes the storage, and returns once that is on disk. It is closed then.
	Remove() error
	Close() error
}

// Log is the storage that replaces an earlier one.
type Log interface {
	storage.Client
	Keys() []string
	FreesWithoutRoom() bool
}

// What a takeover stores in the log:
//
//	takeover     which blocks the earlier storage has, and how their numbers differ from those they have now
//	gone <key>   nothing: a value of the earlier storage that is of no use any more
//
// All of it goes once the earlier storage is deleted.
const (
	takeoverKey  = "takeover"
	gonePrefix   = "gone "
	takeoverSize = 8 + 8 + 8 + 4
)

// A takeover is a log that also has the values of an earlier storage. They are read where they are, so that it costs
// neither time nor space, whenever it is interrupted. When all of them are gone, the earlier storage is deleted.
//
// Its blocks keep their numbers if the log was empty: then they come before all others. In a log that has been used, as
// after a downgrade, they come after its blocks, with the numbers and epochs that follow.
type takeover struct {
	Log

	done func(error)

	mu       sync.Mutex
	earlier  Earlier           // nil once it is deleted
	live     map[string]string // their keys now, by keys in the earlier storage
	shift    uint64            // added to block numbers
	epochs   uint32            // added to epochs
	unlogged []string          // earlier keys that are gone, but not recorded in the log yet
	logged   []string          // those that are recorded
	stays    bool              // the earlier storage could not be deleted
	blocks   int               // in the earlier storage, at first
}

// TakeOver returns a storage with the content of both, and how many blocks the earlier one has, which may be nil. When
// that is deleted, or cannot be, done is called, from within a call of the storage, which it must not call itself.
func TakeOver(ctx context.Context, log Log, earlier Earlier, done func(error)) (client storage.Client, blocks int, err error) {
	record, err := log.Get(ctx, takeoverKey)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read the stored queue: %w", err)
	}
	if earlier == nil && record == nil {
		return log, 0, nil
	}
	t := &takeover{Log: log, earlier: earlier, done: done, live: map[string]string{}}
	if record != nil {
		t.readGone()
	}
	if earlier == nil { // it was deleted, and the process ended before recording that
		return log, 0, log.Batch(ctx, t.forgetLogged()...)
	}
	first, next := earlierSpan(earlier)
	if !t.resume(record, first, next) {
		if err := t.begin(ctx, first, next); err != nil {
			return nil, 0, fmt.Errorf("cannot take over what an earlier version stored: %w", err)
		}
	}
	blocks = t.findLive(first, next)
	t.blocks = blocks
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.live) == 0 {
		return t, 0, t.finish(ctx, nil)
	}
	return t, blocks, nil
}

// earlierSpan is the first and next number of the blocks in use: those that the index says or, if it is damaged, all.
func earlierSpan(earlier Earlier) (first, next uint64) {
	if raw, err := earlier.Get(indexKey); err == nil && raw != nil {
		if first, next, err = parseIndex(raw); err == nil {
			return first, next
		}
	}
	return listingOf(earlier.Keys()).span()
}

// resume reports whether a takeover had begun, and then continues with its numbers. It does not if the earlier version
// wrote since.
func (t *takeover) resume(record []byte, first, next uint64) bool {
	if len(record) != takeoverSize || binary.LittleEndian.Uint64(record) != first || binary.LittleEndian.Uint64(record[8:]) != next {
		return false
	}
	t.shift, t.epochs = binary.LittleEndian.Uint64(record[16:]), binary.LittleEndian.Uint32(record[24:])
	return true
}

// begin decides the new numbers of the earlier blocks, and stores them along with an index that covers them.
func (t *takeover) begin(ctx context.Context, first, next uint64) error {
	from, to := first, next // of the index
	raw, err := t.Log.Get(ctx, indexKey)
	if err != nil {
		return err
	}
	if raw != nil {
		found := listingOf(t.Log.Keys())
		if from, to, err = parseIndex(raw); err != nil {
			from, to = found.span()
		}
		if t.epochs, err = t.nextEpoch(ctx, between(found.blocks, from, to)); err != nil {
			return err
		}
		t.shift = to - first
		to += next - first
	}
	record := make([]byte, 0, takeoverSize)
	for _, n := range []uint64{first, next, t.shift} {
		record = binary.LittleEndian.AppendUint64(record, n)
	}
	record = binary.LittleEndian.AppendUint32(record, t.epochs)
	ops := append(t.forgetLogged(), storage.SetOperation(takeoverKey, record), storage.SetOperation(indexKey, indexOf(from, to)))
	return t.Log.Batch(ctx, ops...)
}

// nextEpoch returns the epoch after that of the log's last block.
func (t *takeover) nextEpoch(ctx context.Context, numbers []uint64) (uint32, error) {
	for _, seq := range slices.Backward(numbers) {
		stored, err := t.Log.Get(ctx, key(BlockPrefix, seq))
		if err != nil {
			return 0, err
		}
		if len(stored) >= preambleSize && checksumMatches(stored[:preambleSize]) {
			return binary.LittleEndian.Uint32(stored[8:]) + 1, nil
		}
	}
	return 0, nil
}

// readGone finds the earlier values that are gone already.
func (t *takeover) readGone() {
	for _, k := range t.Log.Keys() {
		if earlier, ok := strings.CutPrefix(k, gonePrefix); ok {
			t.logged = append(t.logged, earlier)
		}
	}
}

// findLive finds the earlier values in use, and counts blocks.
func (t *takeover) findLive(first, next uint64) (blocks int) {
	gone := map[string]bool{}
	for _, k := range t.logged {
		gone[k] = true
	}
	for _, k := range t.earlier.Keys() {
		for _, prefix := range []string{BlockPrefix, donePrefix} {
			seq, ok := parseKey(prefix, k)
			if !ok || seq < first || seq >= next || gone[k] {
				continue
			}
			t.live[key(prefix, seq+t.shift)] = k
			if prefix == BlockPrefix {
				blocks++
			}
		}
	}
	return blocks
}

// Get returns a value.
func (t *takeover) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := t.Batch(ctx, op)
	return op.Value, err
}

// Set writes a value.
func (t *takeover) Set(ctx context.Context, key string, value []byte) error {
	return t.Batch(ctx, storage.SetOperation(key, value))
}

// Delete deletes a value.
func (t *takeover) Delete(ctx context.Context, key string) error {
	return t.Batch(ctx, storage.DeleteOperation(key))
}

// Batch does what a log does. Values of the earlier storage that it deletes are gone at once, even if there is no space
// to record that: the log records it with the next write.
func (t *takeover) Batch(ctx context.Context, ops ...*storage.Operation) error {
	t.mu.Lock()
	if t.earlier == nil {
		t.mu.Unlock()
		return t.Log.Batch(ctx, ops...)
	}
	defer t.mu.Unlock()
	below := make([]*storage.Operation, 0, len(ops))
	for _, op := range ops {
		earlier, ok := t.live[op.Key]
		switch {
		case !ok:
			below = append(below, op)
		case op.Type == storage.Get:
			var err error
			if op.Value, err = t.read(op.Key, earlier); err != nil {
				return err
			}
		default:
			delete(t.live, op.Key)
			t.unlogged = append(t.unlogged, earlier)
			if op.Type == storage.Set {
				below = append(below, op)
			}
		}
	}
	if len(t.unlogged) > 0 && len(t.live) == 0 && !t.stays {
		return t.finish(ctx, below)
	}
	return t.apply(ctx, below)
}

// read reads an earlier value; a block gets its new epoch. The caller holds mu.
func (t *takeover) read(now, earlier string) ([]byte, error) {
	value, err := t.earlier.Get(earlier)
	if err == nil && strings.HasPrefix(now, BlockPrefix) && len(value) >= preambleSize && checksumMatches(value[:preambleSize]) {
		epoch := binary.LittleEndian.Uint32(value[8:])
		binary.LittleEndian.PutUint32(value[8:], epoch+t.epochs)
		appendChecksum(value[:preambleSize-4])
	}
	return value, err
}

// apply applies operations to the log, and records what is gone. The caller holds mu.
func (t *takeover) apply(ctx context.Context, ops []*storage.Operation) error {
	if len(t.unlogged) == 0 {
		return t.Log.Batch(ctx, ops...)
	}
	all := make([]*storage.Operation, 0, len(t.unlogged)+len(ops))
	onlyDeletes := true
	for _, k := range t.unlogged {
		all = append(all, storage.SetOperation(gonePrefix+k, nil))
	}
	for _, op := range ops {
		onlyDeletes = onlyDeletes && op.Type == storage.Delete
	}
	err := t.Log.Batch(ctx, append(all, ops...)...)
	switch {
	case err == nil:
		t.logged, t.unlogged = append(t.logged, t.unlogged...), nil
	case onlyDeletes: // for which the log needs no space
		return t.Log.Batch(ctx, ops...)
	}
	return err
}

// finish deletes the earlier storage, which frees space, and then applies operations to the log. The caller holds mu.
func (t *takeover) finish(ctx context.Context, ops []*storage.Operation) error {
	err := t.earlier.Remove()
	t.done(err)
	if err != nil { // the next process may succeed
		t.earlier, t.stays = nothing{}, true
		return t.apply(ctx, ops)
	}
	t.earlier, t.unlogged = nil, nil
	return t.Log.Batch(ctx, append(t.forgetLogged(), ops...)...)
}

// forgetLogged returns deletions of all the log's records about the earlier storage.
func (t *takeover) forgetLogged() []*storage.Operation {
	ops := make([]*storage.Operation, 0, len(t.logged)+1)
	for _, k := range t.logged {
		ops = append(ops, storage.DeleteOperation(gonePrefix+k))
	}
	t.logged = nil
	return append(ops, storage.DeleteOperation(takeoverKey))
}

// IsDamaged reports whether some of the log could not be read.
func (t *takeover) IsDamaged() bool {
	l, isLedger := t.Log.(blockCounter)
	return isLedger && l.IsDamaged()
}

// Promised is how many blocks both should have had at first, if the log knows.
func (t *takeover) Promised() (blocks int, ok bool) {
	l, isLedger := t.Log.(blockCounter)
	if !isLedger {
		return 0, false
	}
	blocks, ok = l.Promised()
	return blocks + t.blocks, ok
}

// Keys are the keys of both.
func (t *takeover) Keys() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.AppendSeq(t.Log.Keys(), maps.Keys(t.live))
}

// Close closes both.
func (t *takeover) Close(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.earlier == nil {
		return t.Log.Close(ctx)
	}
	return errors.Join(t.earlier.Close(), t.Log.Close(ctx))
}

// nothing replaces an earlier storage that is closed, but could not be deleted.
type nothing struct{}

func (nothing) Keys() []string             { return nil }
func (nothing) Get(string) ([]byte, error) { return nil, nil }
func (nothing) Remove() error              { return nil }
func (nothing) Close() error               { return nil }
