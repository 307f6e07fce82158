// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "encoding/binary"

// AppendText appends a text for CutText.
func AppendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// CutText cuts off the first text.
func CutText(b []byte) (text, rest []byte) {
	n, size := binary.Uvarint(b)
	b = b[size:]
	return b[:n], b[n:]
}
