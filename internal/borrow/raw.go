// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !purego

//nolint:gosec // the text says how long it is valid
package borrow

import "unsafe"

// textOf returns bytes as a text without copying them, and false because it does not last.
func textOf(b []byte) (text string, lasts bool) {
	return unsafe.String(unsafe.SliceData(b), len(b)), false
}

// offset returns where in a text a part of it begins.
func offset(text, part string) (at int, ok bool) {
	begin, first := uintptr(unsafe.Pointer(unsafe.StringData(text))), uintptr(unsafe.Pointer(unsafe.StringData(part)))
	if first < begin || first-begin > uintptr(len(text)) || uintptr(len(part)) > uintptr(len(text))-(first-begin) {
		return 0, false
	}
	return int(first - begin), true
}
