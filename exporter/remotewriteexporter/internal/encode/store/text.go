// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "encoding/binary"

// AppendText appends a text that cutText finds the end of.
func AppendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// CutText cuts off the first of some texts.
func CutText(b []byte) (text, rest []byte) {
	n, size := binary.Uvarint(b)
	b = b[size:]
	return b[:n], b[n:]
}
