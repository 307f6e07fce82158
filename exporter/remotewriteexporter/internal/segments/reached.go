// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
)

// reached is how far the log was written, and how many counted values there were then. It is in a file of its own,
// which is overwritten after each record without a sync: so it is never ahead of the log, unless the log has lost its
// end.
type reached struct {
	number uint64 // of the file
	size   int64  // of the file; 0 if not known, as before it exists
	values int
	boot   uint32 // start of the machine; 0 if not known
}

const (
	reachedName = "reached"
	reachedSize = 8 + 8 + 4 + 4 + 4
	bootID      = "/proc/sys/kernel/random/boot_id"
)

// thisBoot identifies the current boot of the machine.
func thisBoot() uint32 {
	id, err := os.ReadFile(bootID)
	if err != nil {
		return 0
	}
	return crc32.Checksum(id, castagnoli)
}

// isBeyond reports whether the log was written beyond a position.
func (r reached) isBeyond(number uint64, size int64) bool {
	return r.number > number+1 || r.number > number && r.size > 0 || r.number == number && r.size > size
}

// readReached reads the file; zero if it is missing or damaged.
func (s *Store) readReached() reached {
	b, err := os.ReadFile(filepath.Join(s.dir, reachedName))
	if err != nil || len(b) != reachedSize || crc32.Checksum(b[:reachedSize-4], castagnoli) != binary.LittleEndian.Uint32(b[reachedSize-4:]) {
		return reached{}
	}
	return reached{
		number: binary.LittleEndian.Uint64(b),
		size:   int64(binary.LittleEndian.Uint64(b[8:])),
		values: int(binary.LittleEndian.Uint32(b[16:])),
		boot:   binary.LittleEndian.Uint32(b[20:]),
	}
}

// beginReached opens the file. If it cannot, there is none: an old one might be ahead of a log that has lost its end
// before.
func (s *Store) beginReached() {
	name := filepath.Join(s.dir, reachedName)
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the configuration names the folder
	if err != nil {
		_ = os.Remove(name)
		return
	}
	s.reached, s.boot = file, thisBoot()
	if s.noteReached() != nil {
		_ = file.Close()
		_ = os.Remove(name)
		s.reached = nil
	}
}

// noteReached records how far the log is written. If it cannot, the file stays behind the log, which does no harm. The
// caller holds mu.
func (s *Store) noteReached() error {
	if s.reached == nil {
		return nil
	}
	b := make([]byte, 0, reachedSize)
	b = binary.LittleEndian.AppendUint64(b, s.active().number)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.active().size))
	b = binary.LittleEndian.AppendUint32(b, uint32(s.counted))
	b = binary.LittleEndian.AppendUint32(b, s.boot)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	_, err := s.reached.WriteAt(b, 0)
	return err
}

// findEnd compares the end of the last valid record with how far the log was written. What is between the two is lost.
func (s *Store) findEnd(r reached, end int64) {
	number := uint64(0)
	if len(s.segments) > 0 {
		number = s.active().number
	}
	if r == (reached{}) || !r.isBeyond(number, end) && (r.number != number || r.size != end) {
		return // it is behind, or from an earlier version
	}
	// Without syncs, a power cut may leave any part of this file and of the log.
	if isExact := s.opts.Sync || r.boot != 0 && r.boot == thisBoot(); isExact {
		s.promised = r.values
	}
	written := int64(0) // to the last file
	if len(s.segments) > 0 {
		written = s.active().size
	}
	if !r.isBeyond(number, written) || r.values+s.counted == 0 { // the damage was reported, or nothing is lost and nothing will be sent again
		return
	}
	d := Damage{File: s.name(r.number), Ended: true}
	switch r.number {
	case number:
		d.Bytes = r.size - written
	case number + 1:
		d.Bytes = r.size
	}
	s.damage(d)
}
