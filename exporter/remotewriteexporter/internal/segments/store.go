// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package segments is a storage for a queue: a log in files that are only appended to, and deleted as a whole.
//
// What is written together is a record with a checksum. Where each value is, memory knows. A file goes when nothing of it, and
// no older file, is of use any more, so that what deletes a value never goes before the value; values that keep an old file are
// copied to the end of the log when they are few. So what is delivered takes no room, deleting needs next to none, and a file that is
// damaged costs the records that are.
package segments

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

const (
	// usual is how large a file becomes, unless one record is larger.
	usual = 8 << 20
	// few is how many bytes of values are copied whatever their file has.
	few = 64 << 10
)

var errClosed = errors.New("the storage is closed")

// Options say how to write.
type Options struct {
	// Sync waits for the disk with each write, so that it survives the machine, too.
	Sync bool
	// Counted begins the keys of values that are set once, and of which each record says how many there are: so that it is known of
	// how many nothing is left, where a part of a file cannot be read.
	Counted string
	// Damaged is told of files parts of which cannot be read.
	Damaged func(Damage)
}

// Damage is what cannot be read of a file.
type Damage struct {
	File  string
	Bytes int64 // 0 if the file is not there, or empty
	// Torn says that it may be no more than the last write, in which the machine stopped: nobody was told that it was done.
	Torn bool
}

// unknown is how many values there should be where the log does not say.
const unknown = -1

// Store is a storage.Client that tells its keys.
type Store struct {
	dir  string
	opts Options
	lock *os.File

	mu       sync.Mutex
	index    map[string]place
	segments []*segment // the last is written to
	file     *os.File   // of that
	size     int64      // of all
	live     int64      // of values
	counted  int        // values that are counted
	unlogged []string   // keys that are deleted, which the log does not say
	buffer   []byte
	ends     []int // in buffer, of what is written
	closed   bool

	untold   []string // files that were let go, of which no record is aware yet
	promised int      // values that are counted, as of the last record that could be read; or unknown
	damaged  bool     // whether a part of the log could not be read
}

// place is where a value is.
type place struct {
	of   *segment
	at   int64
	size uint32
}

// segment is a file.
type segment struct {
	number uint64
	size   int64
	values int   // that are of use
	live   int64 // their bytes
	broken bool  // nothing more can be written to it
}

// Open reads the log in a folder, which it makes if it is not there. Nobody else may use the folder.
func Open(dir string, opts Options) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, opts: opts, lock: lock, index: map[string]place{}}
	if err := s.recover(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := s.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot begin a file in %s: %w", dir, err), lock.Close())
	}
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

// Batch does all of it or, if a value cannot be written, nothing. What is deleted is gone at once even if the log cannot say so
// yet: it says so with what is written next.
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

// value reads one, of what is about to be written if it is there. The caller holds mu.
func (s *Store) value(key string, writes []*storage.Operation) ([]byte, error) {
	for _, op := range slices.Backward(writes) {
		if op.Key == key {
			return slices.Clone(op.Value), nil // none of what is deleted
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

// remove deletes values, and says so before their files go, so that at any time the log has as many as it says. Where there is no room to
// say it, files that have nothing else go first, and it is said of the others. The caller holds mu.
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
		s.letGo()
		for i, key := range keys {
			if slices.Contains(s.segments, of[i]) {
				s.unlogged = append(s.unlogged, key)
			}
		}
		isSaid := len(s.unlogged) == 0 // by the files that are gone
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

// forget deletes a value in memory. The caller holds mu.
func (s *Store) forget(key string) {
	p, ok := s.index[key]
	if !ok {
		return
	}
	delete(s.index, key)
	p.of.values--
	p.of.live -= int64(p.size)
	s.live -= int64(p.size)
	if s.isCounted(key) {
		s.counted--
	}
}

// keep notes where a value is. The caller holds mu.
func (s *Store) keep(key string, p place) {
	s.forget(key)
	s.index[key] = p
	p.of.values++
	p.of.live += int64(p.size)
	s.live += int64(p.size)
	if s.isCounted(key) {
		s.counted++
	}
}

func (s *Store) isCounted(key string) bool {
	return s.opts.Counted != "" && strings.HasPrefix(key, s.opts.Counted)
}

// countAfter is how many values that are counted there will be. The caller holds mu.
func (s *Store) countAfter(ops []*storage.Operation) int {
	n := s.counted
	for i, op := range ops {
		if !s.isCounted(op.Key) {
			continue
		}
		_, is := s.index[op.Key]
		if will := op.Type == storage.Set; is == will || isNamed(ops[i+1:], op.Key) {
			continue
		}
		if is {
			n--
		} else {
			n++
		}
	}
	return n
}

func isNamed(ops []*storage.Operation, key string) bool {
	return slices.ContainsFunc(ops, func(op *storage.Operation) bool { return op.Key == key })
}

// write appends a record, with what is unlogged before it. The caller holds mu.
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
	s.forgetUntold()
	for i, op := range ops {
		if op.Type == storage.Delete {
			s.forget(op.Key)
		} else {
			s.keep(op.Key, place{s.active(), at + int64(s.ends[i]-len(op.Value)), uint32(len(op.Value))})
		}
	}
	return nil
}

// append writes a record to the end of the log, and returns where in its file that is. The caller holds mu.
func (s *Store) append(record []byte) (at int64, err error) {
	if a := s.active(); a.size > 0 && (a.broken || a.size+int64(len(record)) > usual) {
		if err := s.roll(); err != nil {
			return 0, err
		}
	}
	a := s.active()
	_, err = s.file.WriteAt(record, a.size)
	synced := err == nil
	if synced && s.opts.Sync {
		err = s.file.Sync()
	}
	if err != nil {
		// Whether some of it is there nobody knows. It must not be in front of what comes next; nor is a file trusted that the disk
		// did not take.
		a.broken = s.file.Truncate(a.size) != nil || synced
		return 0, fmt.Errorf("cannot write %s: %w", s.name(a.number), err)
	}
	a.broken = false
	at = a.size
	a.size += int64(len(record))
	s.size += int64(len(record))
	return at, nil
}

// begin goes on with the last file if that is empty, else it begins another: so an empty file that is not the last is none of ours. Where there
// is no room for another, it is begun with what is written next: what is there can be read, and makes room when it is done with.
func (s *Store) begin() error {
	if len(s.segments) == 0 {
		return s.roll()
	}
	if s.active().size > 0 {
		err := s.roll()
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			return err
		}
		s.active().broken = true
		s.file, err = os.Open(s.name(s.active().number))
		return err
	}
	file, err := s.create(s.active().number)
	s.file = file
	return err
}

// create makes an empty file, or opens it. Somebody may have removed the folder with what was in it: there is no reason to take nothing
// ever again.
func (s *Store) create(number uint64) (*os.File, error) {
	file, err := os.OpenFile(s.name(number), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if errors.Is(err, os.ErrNotExist) && os.MkdirAll(s.dir, 0o700) == nil {
		file, err = os.OpenFile(s.name(number), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	}
	if err != nil || !s.opts.Sync {
		return file, err
	}
	if err := SyncFolder(s.dir); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(s.name(number)))
	}
	return file, nil
}

// roll begins another file. The caller holds mu.
func (s *Store) roll() error {
	number := uint64(1)
	if len(s.segments) > 0 {
		number = s.active().number + 1
	}
	file, err := s.create(number)
	if err != nil {
		return err
	}
	if s.file != nil {
		_ = s.file.Close() // all that is in it was written, and waited for if that was asked for
	}
	s.file = file
	s.segments = append(s.segments, &segment{number: number})
	return nil
}

// reap deletes the oldest files while nothing in them is of use. The caller holds mu.
func (s *Store) reap() {
	for len(s.segments) > 1 && s.segments[0].values == 0 {
		if err := os.Remove(s.name(s.segments[0].number)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return // the next time, perhaps
		}
		s.size -= s.segments[0].size
		s.segments = s.segments[1:]
	}
}

// letGo frees the room of files that reap would delete, where there is none to say what is gone with them. Their names are changed, and
// stay until a record says how many values there are without theirs. The caller holds mu.
func (s *Store) letGo() {
	for len(s.segments) > 1 && s.segments[0].values == 0 {
		name := s.name(s.segments[0].number)
		if os.Rename(name, name+untold) != nil {
			return
		}
		_ = os.Truncate(name+untold, 0)
		s.untold = append(s.untold, name+untold)
		s.size -= s.segments[0].size
		s.segments = s.segments[1:]
	}
}

// forgetUntold deletes their names. The caller holds mu.
func (s *Store) forgetUntold() {
	for _, name := range s.untold {
		_ = os.Remove(name)
	}
	s.untold = nil
}

// compact copies what is of use in the oldest file to the end of the log, if that is little, or if the log is more than twice as
// large as what is of use in it. The caller holds mu.
func (s *Store) compact() {
	if len(s.segments) == 1 && s.active().size > usual/8 && s.live < few {
		if s.roll() != nil {
			return
		}
	}
	oldest := s.segments[0]
	if len(s.segments) == 1 || s.live >= few && (2*oldest.live > oldest.size || s.size < 2*s.live+4*usual) {
		return
	}
	ops, err := s.copies(oldest)
	if err != nil {
		return
	}
	if s.write(ops) == nil {
		s.reap()
	}
}

// Keys are those of all values, in order.
func (s *Store) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.index))
}

// Close lets go of the folder.
func (s *Store) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.file.Sync(), s.file.Close(), s.lock.Close())
}

// IsDamaged tells whether a part of the log could not be read.
func (s *Store) IsDamaged() bool { return s.damaged }

// Promised is how many of the values that are counted there should have been when the log was opened: never more than there were.
// It is false if the log does not say.
func (s *Store) Promised() (values int, ok bool) { return s.promised, s.promised != unknown }

// FreesWithoutRoom says that deleting needs no room where all of a file is deleted.
func (*Store) FreesWithoutRoom() bool { return true }

// Size is how many bytes the files have.
func (s *Store) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

func (s *Store) active() *segment { return s.segments[len(s.segments)-1] }

func (s *Store) name(number uint64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%016x%s", number, suffix))
}
