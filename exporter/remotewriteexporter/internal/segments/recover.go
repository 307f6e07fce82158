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
	// setAside is behind the name of a file that is damaged, under which it stays when it is of no use any more. So many stay.
	setAside     = ".damaged"
	mostSetAside = 4
	// stranger and a number are behind the name of what has the name of a file and is none.
	stranger = ".stranger"
	// untold follows the name of a file that was deleted while there was no room to record what was deleted with it.
	untold = ".gone"
	// lockName is the file that holds the lock.
	lockName = "lock"
	// page is what a disk gives or does not give as a whole.
	page = 4 << 10
)

// recover reads what is there. What was being written when the process or the machine ended, and nobody was told of, may be at the
// end of the last file in part: that is cut off.
func (s *Store) recover() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var numbers []uint64
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix+untold) {
			s.untold = append(s.untold, filepath.Join(s.dir, e.Name()))
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
			s.damage(Damage{File: s.name(numbers[i-1] + 1)}) // it is not there
		}
		if end, err = s.replay(number, i == len(numbers)-1, r); err != nil {
			return fmt.Errorf("cannot read %s: %w", s.name(number), err)
		}
	}
	s.findEnd(r, end)
	if len(s.untold) > 0 { // the last record counts values that were in them
		s.promised = unknown
	}
	// Those of the files before the first; but without waits for the disk a power cut may have kept a file's going, and not what was said of it.
	if s.opts.Sync && !s.damaged && s.promised != unknown && s.counted < s.promised {
		s.damage(Damage{File: s.name(numbers[0] - 1)})
	}
	return nil
}

// replay reads a file, the last of which may have a torn end, and returns where its last sound record ends.
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
		if size > 0 && at+size <= next { // its length is right: who reads the values knows which are
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

// readFile reads a file, with zeros for what the disk does not give: so that costs what was there, and not all that is stored.
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

// cutOff removes what is torn at the end of a file.
func (s *Store) cutOff(g *segment, at int) error {
	file, err := os.OpenFile(s.name(g.number), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	s.size -= g.size - int64(at)
	g.size = int64(at)
	return errors.Join(file.Truncate(int64(at)), file.Sync(), file.Close())
}

// apply does what a record says. Of one that is damaged a key may be another than was written: what it deletes stays, and so does what
// it sets anew of values that are set once.
func (s *Store) apply(g *segment, record []byte, at int, sound bool) {
	if sound {
		s.promised = unknown // earlier versions do not say
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
				s.promised++ // until a record says how many there are
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

// moveAway gives what has the name of a file and is none, such as a folder, another name. Nobody reads it, and what stays beside it is read.
func (s *Store) moveAway(name string) error {
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s%s%d", name, stranger, n)
		if _, err := os.Lstat(to); err == nil {
			continue // of an earlier one
		}
		if err := os.Rename(name, to); err != nil {
			return fmt.Errorf("cannot move away what is not a file of the queue: %w", err)
		}
		s.opts.Damaged(Damage{File: to, Stranger: true})
		return nil
	}
}

// clearWay moves away folders that have the names of files beside the log.
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

// setAside keeps a damaged file under another name, for whoever wants to look at it, and lets older ones go.
func (s *Store) setAside(number uint64) {
	old, err := filepath.Glob(filepath.Join(s.dir, "*"+setAside))
	if err == nil && len(old) >= mostSetAside {
		slices.Sort(old)
		for _, name := range old[:len(old)-mostSetAside+1] {
			_ = os.Remove(name)
		}
	}
	_ = os.Link(s.name(number), s.name(number)+setAside) // where that cannot be, it is only read
}
