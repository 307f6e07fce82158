// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
)

// A record is a mark, the length of its content, a checksum of both, and the content: sets and deletes, and the number
// of counted values after them.
const (
	markSize = 4
	headSize = markSize + 4 + 4

	isSet    = 1
	isDelete = 2
	isCount  = 3
)

var (
	mark       = []byte{0xb1, 'g', 'o', 'd'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

func beginRecord(b []byte) []byte {
	return append(append(b, mark...), make([]byte, headSize-markSize)...)
}

func appendSet(b []byte, key string, value []byte) []byte {
	b = append(b, isSet)
	b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

func appendDelete(b []byte, key string) []byte {
	b = append(b, isDelete)
	return append(binary.AppendUvarint(b, uint64(len(key))), key...)
}

func appendCount(b []byte, n int) []byte {
	return binary.AppendUvarint(append(b, isCount), uint64(n))
}

func endRecord(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[markSize:], uint32(len(b)-headSize))
	binary.LittleEndian.PutUint32(b[markSize+4:], checksum(b))
	return b
}

// checksum returns the checksum of a whole record.
func checksum(record []byte) uint32 {
	return crc32.Update(crc32.Checksum(record[markSize:markSize+4], castagnoli), castagnoli, record[headSize:])
}

// recordAt returns the length of the record at the beginning of b, 0 if there is none, and whether its checksum is
// right.
func recordAt(b []byte) (size int, sound bool) {
	if len(b) < headSize || !bytes.HasPrefix(b, mark) {
		return 0, false
	}
	size = headSize + int(binary.LittleEndian.Uint32(b[markSize:]))
	if size > len(b) {
		return 0, false
	}
	return size, checksum(b[:size]) == binary.LittleEndian.Uint32(b[markSize+4:])
}

// nextRecord returns the offset of the next valid record from some offset on; the end of b if there is none.
func nextRecord(b []byte, from int) int {
	for from < len(b) {
		n := bytes.Index(b[from:], mark)
		if n < 0 {
			return len(b)
		}
		from += n
		if _, sound := recordAt(b[from:]); sound {
			return from
		}
		from++
	}
	return len(b)
}

// isTorn reports whether an invalid end of a log can be a record that was being written when the process or the machine
// stopped: not if another record begins after it.
func isTorn(rest []byte) bool {
	if size, _ := recordAt(rest); size > 0 && size < len(rest) {
		return false
	}
	for at := 1; at < len(rest); at++ {
		n := bytes.Index(rest[at:], mark)
		if n < 0 {
			return true
		}
		at += n
		if size, _ := recordAt(rest[at:]); size > 0 {
			return false
		}
	}
	return true
}

// isBegun reports whether b is the beginning of a record, as a killed process leaves.
func isBegun(b []byte) bool {
	n := min(len(b), markSize)
	return bytes.Equal(b[:n], mark[:n]) && (len(b) < headSize || headSize+int(binary.LittleEndian.Uint32(b[markSize:])) > len(b))
}

// change is a set or a delete in a record, or its number of counted values.
type change struct {
	kind     byte
	key      string
	at, size int // of the value, in the record
	count    int
}

// changesOf decodes a record. If it is invalid, it returns false and the changes up to there.
func changesOf(record []byte) (list []change, whole bool) {
	text := func(at int) (from, to int) {
		n, size := binary.Uvarint(record[at:])
		if size <= 0 || n > uint64(len(record)-at-size) {
			return 0, -1
		}
		return at + size, at + size + int(n)
	}
	for at := headSize; at < len(record); {
		kind := record[at]
		if kind == isCount {
			n, size := binary.Uvarint(record[at+1:])
			if size <= 0 || n > math.MaxInt32 {
				return list, false
			}
			list = append(list, change{kind: kind, count: int(n)})
			at += 1 + size
			continue
		}
		from, to := text(at + 1)
		if to < 0 || kind != isSet && kind != isDelete {
			return list, false
		}
		c := change{kind: kind, key: string(record[from:to])}
		if kind == isSet {
			if from, to = text(to); to < 0 {
				return list, false
			}
			c.at, c.size = from, to-from
		}
		list = append(list, c)
		at = to
	}
	return list, true
}
