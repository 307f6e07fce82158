// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const (
	suffix = ".log"
	// damagedSuffix is the suffix of a damaged file that is kept although it is no longer needed. The number of these
	// is limited.
	damagedSuffix = ".damaged"
	mostSetAside  = 4
	// foreignSuffix and a number are the suffix of something else that had the name of a file.
	foreignSuffix = ".stranger"
	// unrecordedSuffix is the suffix of a file that was deleted while there was no space to record which values were deleted with
	// it.
	unrecordedSuffix = ".gone"
	// lockName is the lock file.
	lockName = "lock"
	// page is the unit in which a disk may lose data.
	page = 4 << 10
)

// recover reads the log. The end of the last file may have part of a record that was being written when the process or
// the machine stopped: nobody was told that it succeeded, and it is cut off.
func (s *Store) recover() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var numbers []uint64
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix+unrecordedSuffix) {
			s.unrecorded = append(s.unrecorded, filepath.Join(s.dir, e.Name()))
			continue
		}
		number, err := strconv.ParseUint(strings.TrimSuffix(e.Name(), suffix), 16, 64)
		if err != nil || s.name(number) != filepath.Join(s.dir, e.Name()) {
			continue // it is somebody else's, such as feed.log
		}
		if info, err := os.Stat(s.name(number)); err == nil && info.Mode().IsRegular() {
			numbers = append(numbers, number)
		} else if err := s.moveAway(s.name(number)); err != nil {
			return err
		}
	}
	slices.Sort(numbers)
	s.promised = unknown
	r, end := s.readReached(), int64(0)
	for i, number := range numbers {
		if i > 0 && number != numbers[i-1]+1 {
			s.damage(Damage{File: s.name(numbers[i-1] + 1)}) // the file is missing
		}
		if end, err = s.replay(number, i == len(numbers)-1, r); err != nil {
			return fmt.Errorf("cannot read %s: %w", s.name(number), err)
		}
	}
	s.findEnd(r, end)
	if len(s.unrecorded) > 0 { // the last record still counts their values
		s.promised = unknown
	}
	// Values in files before the first are lost; but without syncs, a power cut may have kept the deletion of a file,
	// and lost its record.
	if s.opts.Sync && !s.damaged && s.promised != unknown && s.counted < s.promised {
		s.damage(Damage{File: s.name(numbers[0] - 1)})
	}
	return nil
}

// replay reads a file, the last of which may have a torn end, and returns where its last valid record ends.
func (s *Store) replay(number uint64, isLast bool, r reached) (end int64, err error) {
	content, err := s.readFile(number)
	if err != nil {
		return 0, err
	}
	g := &segment{number: number, size: int64(len(content))}
	s.segments = append(s.segments, g)
	s.size += g.size
	if len(content) == 0 && !isLast {
		s.damage(Damage{File: s.name(number)})
	}
	damaged := 0
	for at := 0; at < len(content); {
		size, sound := recordAt(content[at:])
		if sound {
			s.apply(g, content[at:at+size], at, true)
			at += size
			end = int64(at)
			continue
		}
		next := nextRecord(content, at+1)
		if next == len(content) && isLast && !r.isBeyond(number, int64(at)) && isTorn(content[at:]) {
			if !isBegun(content[at:]) {
				s.opts.Damaged(Damage{File: s.name(number), Bytes: int64(next - at), Torn: true})
			}
			if err := s.cutOff(g, at); err != nil {
				return 0, err
			}
			break
		}
		damaged += next - at
		if size > 0 && at+size <= next { // the length is right: reading its values will show which are damaged
			s.apply(g, content[at:at+size], at, false)
		}
		at = next
	}
	if damaged > 0 {
		s.setAside(number)
		s.damage(Damage{File: s.name(number), Bytes: int64(damaged)})
	}
	return end, nil
}

// readFile reads a file, with zeros in place of unreadable pages: so only these are lost.
func (s *Store) readFile(number uint64) ([]byte, error) {
	content, err := os.ReadFile(s.name(number))
	if !errors.Is(err, syscall.EIO) {
		return content, err
	}
	file, err := os.Open(s.name(number))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	content = make([]byte, info.Size())
	for at := 0; at < len(content); at += page {
		if _, err := file.ReadAt(content[at:min(at+page, len(content))], int64(at)); err != nil {
			clear(content[at:min(at+page, len(content))])
		}
	}
	return content, nil
}

func (s *Store) damage(d Damage) {
	s.damaged = true
	s.opts.Damaged(d)
}

// cutOff removes a torn record from the end of a file.
func (s *Store) cutOff(g *segment, at int) error {
	file, err := os.OpenFile(s.name(g.number), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	s.size -= g.size - int64(at)
	g.size = int64(at)
	return errors.Join(file.Truncate(int64(at)), file.Sync(), file.Close())
}

// apply applies a record to the index. The keys of a damaged record may be wrong: so it deletes nothing, and does not
// overwrite counted values, which are set only once.
func (s *Store) apply(g *segment, record []byte, at int, sound bool) {
	if sound {
		s.promised = unknown // earlier versions do not record it
	}
	list, _ := changesOf(record)
	for _, c := range list {
		switch c.kind {
		case isSet:
			_, ok := s.index[c.key]
			isNew := !ok && s.isCounted(c.key)
			if sound || isNew || !s.isCounted(c.key) {
				s.keep(c.key, place{g, int64(at + c.at), uint32(c.size)})
			}
			if isNew && s.promised != unknown {
				s.promised++ // until a record has the number
			}
		case isDelete:
			if sound {
				s.forget(c.key)
			}
		case isCount:
			if sound {
				s.promised = c.count
			}
		}
	}
}

// moveAway renames something else that has the name of a file, such as a folder, so that the files beside it can be
// read.
func (s *Store) moveAway(name string) error {
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s%s%d", name, foreignSuffix, n)
		if _, err := os.Lstat(to); err == nil {
			continue // of an earlier one
		}
		if err := os.Rename(name, to); err != nil {
			return fmt.Errorf("cannot move away what is not a file of the queue: %w", err)
		}
		s.opts.Damaged(Damage{File: to, Foreign: true})
		return nil
	}
}

// clearWay moves away folders with the names of the files beside the log.
func (s *Store) clearWay(names ...string) error {
	for _, name := range names {
		name = filepath.Join(s.dir, name)
		if info, err := os.Stat(name); err != nil || !info.IsDir() {
			continue
		}
		if err := s.moveAway(name); err != nil {
			return err
		}
	}
	return nil
}

// setAside keeps a damaged file under another name, for inspection, and deletes the oldest such files.
func (s *Store) setAside(number uint64) {
	old, err := filepath.Glob(filepath.Join(s.dir, "*"+damagedSuffix))
	if err == nil && len(old) >= mostSetAside {
		slices.Sort(old)
		for _, name := range old[:len(old)-mostSetAside+1] {
			_ = os.Remove(name)
		}
	}
	_ = os.Link(s.name(number), s.name(number)+damagedSuffix) // if that fails, it is only read
}
