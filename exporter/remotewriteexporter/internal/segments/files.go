// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// segment is a file.
type segment struct {
	number uint64
	size   int64
	values int   // still needed
	live   int64 // their bytes
	broken bool  // nothing more may be written to it
}

// append writes a record to the end of the log, and returns its offset in the file. The caller holds mu.
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
		// Part of it may be on disk. It must not precede the next record, and a file that failed to sync is not
		// trusted.
		a.broken = s.file.Truncate(a.size) != nil || synced
		return 0, fmt.Errorf("cannot write %s: %w", s.name(a.number), err)
	}
	a.broken = false
	at = a.size
	a.size += int64(len(record))
	s.size += int64(len(record))
	return at, nil
}

// begin continues the last file if that is empty, else it begins another: so an empty file that is not the last is none
// of ours. If there is no space for another, the next write begins it: what exists can be read, and frees space when it
// is done with.
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

// create makes an empty file, or opens it. If somebody removed the folder, or made a file with the name, writes must
// still succeed later.
func (s *Store) create(number uint64) (*os.File, error) {
	open := func() (*os.File, error) {
		return os.OpenFile(s.name(number), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	}
	file, err := open()
	if errors.Is(err, os.ErrNotExist) && os.MkdirAll(s.dir, 0o700) == nil || errors.Is(err, syscall.EISDIR) && s.moveAway(s.name(number)) == nil {
		file, err = open()
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
		_ = s.file.Close() // all of it was written, and synced if configured
	}
	s.file = file
	s.segments = append(s.segments, &segment{number: number})
	return nil
}

func (s *Store) active() *segment { return s.segments[len(s.segments)-1] }

func (s *Store) name(number uint64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%016x%s", number, suffix))
}
