// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package borrow makes text of bytes without copying them.
//
// A Text and all its parts are valid until its bytes are overwritten. To keep a part, ask for one that lasts: the
// first time the whole text is copied, once, and from then on such parts are parts of the copy.
package borrow

import "strings"

// A Text is a borrowed text. Its zero value is empty.
type Text struct {
	text   string
	lasts  bool   // the bytes were copied when the text was made
	copied string // all of it, once a part had to last
}

// Of borrows bytes.
func Of(b []byte) Text {
	text, lasts := textOf(b)
	return Text{text: text, lasts: lasts}
}

// String returns the whole text, borrowed.
func (t *Text) String() string { return t.text }

// Lasting returns a lasting copy of a part of the text. A string that is not a part is copied separately.
func (t *Text) Lasting(part string) string {
	if t.lasts || part == "" {
		return part
	}
	at, ok := offset(t.text, part)
	if !ok {
		return strings.Clone(part)
	}
	if t.copied == "" {
		t.copied = strings.Clone(t.text)
	}
	return t.copied[at : at+len(part)]
}
