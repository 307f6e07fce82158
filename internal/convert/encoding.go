// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"io"
	"strings"
	"unicode/utf16"
)

// readable is a text in UTF-8 whose lines end with \n alone, and without a mark of its byte order: editors and shells of Windows write it otherwise.
func readable(text []byte) []byte {
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

// secret is what a text of Kubernetes' in base64 stands for, unpacked where it is in gzip, as the operators' own configurations are.
func secret(text string) ([]byte, bool) {
	plain, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, false
	}
	if packed, err := gzip.NewReader(bytes.NewReader(plain)); err == nil {
		if plain, err = io.ReadAll(io.LimitReader(packed, maxFile+1)); err != nil {
			return nil, false
		}
	}
	return readable(plain), true
}
