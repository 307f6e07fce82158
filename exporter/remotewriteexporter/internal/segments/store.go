// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package segments is a storage for a queue: a log in files that are only appended to, and deleted as a whole.
//
// Values written together are a record with a checksum. The position of each value is in memory. A file is deleted when it and
// all older files have nothing that is still needed, so that a deletion never disappears before its value; the last few values of an old file
// are copied to the end of the log. So delivered data takes no space, deleting needs almost none, and a damaged file
// loses only its damaged records.
package segments

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

var errClosed = errors.New("the storage is closed")

// Options say how to write.
type Options struct {
	// Sync syncs each write to disk, so that it survives a crash of the machine, too.
	Sync bool
	// Counted is the prefix of keys that are set only once, and whose number each record has: so it is known how many
	// are lost where part of a file cannot be read.
	Counted string
	// Damaged is called for files that cannot be read in part.
	Damaged func(Damage)
}

// Damage is what cannot be read of a file.
type Damage struct {
	File  string
	Bytes int64 // 0 if the file is missing or empty
	// Torn says that it may be just the last write, during which the machine stopped: nobody was told that it
	// succeeded.
	Torn bool
	// Ended says that the log ends here, although more was written.
	Ended bool
	// Foreign says that something else had the name of a file, and what it is named now.
	Foreign bool
}

// unknown stands for a number of values that the log does not tell.
const unknown = -1

// Store is a storage.Client that can list its keys.
type Store struct {
	dir  string
	opts Options
	lock *os.File

	mu       sync.Mutex
	index    map[string]place
	segments []*segment // the last one is written to
	file     *os.File   // the last segment
	reached  *os.File   // how far the log is written; nil if there is no such file
	boot     uint32     // of the machine
	size     int64      // of all files
	live     int64      // of values
	counted  int        // number of counted values
	unlogged []string   // deleted keys that are not recorded yet
	buffer   []byte
	ends     []int // offsets in buffer of written values
	closed   bool

	unrecorded []string // deleted files that no record reflects yet
	promised   int      // counted values by the last valid record; or unknown
	damaged    bool     // part of the log could not be read
}

// Open reads the log in a folder, which it makes if needed. Nobody else may use the folder.
func Open(dir string, opts Options) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, opts: opts, index: map[string]place{}}
	if err := s.clearWay(lockName); err != nil {
		return nil, err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	s.lock = lock
	if err := errors.Join(s.clearWay(reachedName, reserveName), s.recover()); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := s.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot begin a file in %s: %w", dir, err), lock.Close())
	}
	s.beginReached()
	s.reap()
	s.fillReserve()
	return s, nil
}

// Get returns a value.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := s.Batch(ctx, op)
	return op.Value, err
}

// Set writes a value.
func (s *Store) Set(ctx context.Context, key string, value []byte) error {
	return s.Batch(ctx, storage.SetOperation(key, value))
}

// Delete deletes a value.
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.Batch(ctx, storage.DeleteOperation(key))
}

// Batch does everything or, if a value cannot be written, nothing. Deletions take effect at once, even if there is no
// space to record them: they are recorded with the next write.
func (s *Store) Batch(_ context.Context, ops ...*storage.Operation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	var writes []*storage.Operation
	onlyDeletes := true
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			var err error
			if op.Value, err = s.value(op.Key, writes); err != nil {
				return err
			}
		default:
			onlyDeletes = onlyDeletes && op.Type == storage.Delete
			writes = append(writes, op)
		}
	}
	switch {
	case len(writes) == 0:
		return nil
	case onlyDeletes:
		return s.remove(writes)
	}
	err := s.write(writes)
	if err != nil && s.rescue() {
		err = s.write(writes)
	}
	if err != nil {
		return err
	}
	s.reap()
	s.compact()
	return nil
}

// value reads a value, which may be among those about to be written. The caller holds mu.
func (s *Store) value(key string, writes []*storage.Operation) ([]byte, error) {
	for _, op := range slices.Backward(writes) {
		if op.Key == key {
			return slices.Clone(op.Value), nil // never a deleted one
		}
	}
	p, ok := s.index[key]
	if !ok {
		return nil, nil
	}
	return s.read(p)
}

func (s *Store) read(p place) ([]byte, error) {
	file := s.file
	if p.of != s.active() {
		var err error
		if file, err = os.Open(s.name(p.of.number)); err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
	}
	value := make([]byte, p.size)
	if _, err := file.ReadAt(value, p.at); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", s.name(p.of.number), err)
	}
	return value, nil
}

// remove deletes values, and records that before it deletes files, so that the log always has as many values as it
// says. If there is no space for the record, files without other values go first, and the record is about the rest. The
// caller holds mu.
func (s *Store) remove(ops []*storage.Operation) error {
	var of []*segment
	var keys []string
	for _, op := range ops {
		if p, ok := s.index[op.Key]; ok {
			of, keys = append(of, p.of), append(keys, op.Key)
			s.forget(op.Key)
		}
	}
	before := s.unlogged
	if s.unlogged = slices.Concat(before, keys); len(s.unlogged) == 0 {
		return nil
	}
	err := s.write(nil)
	if err != nil {
		s.unlogged = before
		s.freeUnrecorded()
		for i, key := range keys {
			if slices.Contains(s.segments, of[i]) {
				s.unlogged = append(s.unlogged, key)
			}
		}
		isSaid := len(s.unlogged) == 0 // with the files
		if err = s.write(nil); isSaid {
			return nil
		}
	}
	if err != nil {
		if s.rescue() {
			return nil
		}
		return err
	}
	s.reap()
	s.compact()
	return nil
}

// write appends a record, which begins with unlogged deletions. The caller holds mu.
func (s *Store) write(ops []*storage.Operation) error {
	b := beginRecord(s.buffer[:0])
	for _, key := range s.unlogged {
		b = appendDelete(b, key)
	}
	s.ends = s.ends[:0]
	for _, op := range ops {
		if op.Type == storage.Delete {
			b = appendDelete(b, op.Key)
		} else {
			b = appendSet(b, op.Key, op.Value)
		}
		s.ends = append(s.ends, len(b))
	}
	if s.opts.Counted != "" {
		b = appendCount(b, s.countAfter(ops))
	}
	b = endRecord(b)
	if s.buffer = b[:0]; cap(b) > usual {
		s.buffer = nil
	}
	at, err := s.append(b)
	if err != nil {
		return err
	}
	s.unlogged = nil
	s.removeUnrecorded()
	for i, op := range ops {
		if op.Type == storage.Delete {
			s.forget(op.Key)
		} else {
			s.keep(op.Key, place{s.active(), at + int64(s.ends[i]-len(op.Value)), uint32(len(op.Value))})
		}
	}
	_ = s.noteReached()
	return nil
}

// Keys are the keys of all values, sorted.
func (s *Store) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.index))
}

// Close releases the folder.
func (s *Store) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.reached != nil {
		_ = s.reached.Close()
	}
	return errors.Join(s.file.Sync(), s.file.Close(), s.lock.Close())
}

// IsDamaged reports whether part of the log could not be read.
func (s *Store) IsDamaged() bool { return s.damaged }

// Promised is how many counted values there should have been when the log was opened: never more than there were. It
// returns false if the log does not say.
func (s *Store) Promised() (values int, ok bool) { return s.promised, s.promised != unknown }

// FreesWithoutRoom reports that deletions need no space if all of a file is deleted.
func (*Store) FreesWithoutRoom() bool { return true }

// Size is the size of the files in bytes.
func (s *Store) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}
