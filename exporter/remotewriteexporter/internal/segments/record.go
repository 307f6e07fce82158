// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package segments

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A record is a mark, the length of its content, a checksum of both, and the content: sets and deletes, one after another.
const (
	markSize = 4
	headSize = markSize + 4 + 4

	isSet    = 1
	isDelete = 2
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

func endRecord(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[markSize:], uint32(len(b)-headSize))
	binary.LittleEndian.PutUint32(b[markSize+4:], checksum(b))
	return b
}

// checksum is that of a whole record.
func checksum(record []byte) uint32 {
	return crc32.Update(crc32.Checksum(record[markSize:markSize+4], castagnoli), castagnoli, record[headSize:])
}

// recordAt is how long the record at the beginning of b is, 0 if there is none, and whether it is as it was written.
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

// nextRecord is where the next sound record is from some place on; the end of b if there is none.
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

// change is a set or a delete in a record.
type change struct {
	key      string
	at, size int // of the value, in the record
	isSet    bool
}

// changesOf takes a record apart. It is false if that is not possible, up to where it is.
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
		from, to := text(at + 1)
		if to < 0 || kind != isSet && kind != isDelete {
			return list, false
		}
		c := change{key: string(record[from:to]), isSet: kind == isSet}
		if c.isSet {
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
