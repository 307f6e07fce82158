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
	values int   // that are of use
	live   int64 // their bytes
	broken bool  // nothing more can be written to it
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

// create makes an empty file, or opens it. Somebody may have removed the folder with what was in it, or have made one of the file's name:
// there is no reason to take nothing ever again.
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
		_ = s.file.Close() // all that is in it was written, and waited for if that was asked for
	}
	s.file = file
	s.segments = append(s.segments, &segment{number: number})
	return nil
}

func (s *Store) active() *segment { return s.segments[len(s.segments)-1] }

func (s *Store) name(number uint64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%016x%s", number, suffix))
}
