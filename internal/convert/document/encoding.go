// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// Readable returns a text as UTF-8 without a byte order mark, and with lines that end with \n alone: editors and shells
// of Windows write it otherwise.
func Readable(text []byte) []byte {
	for mark, order := range map[string]binary.ByteOrder{"\xff\xfe": binary.LittleEndian, "\xfe\xff": binary.BigEndian} {
		rest, marked := bytes.CutPrefix(text, []byte(mark))
		if !marked || len(rest)%2 != 0 {
			continue
		}
		units := make([]uint16, len(rest)/2)
		for i := range units {
			units[i] = order.Uint16(rest[2*i:])
		}
		text = []byte(string(utf16.Decode(units)))
		break
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
}
