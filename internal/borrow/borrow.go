// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package borrow makes text of bytes without copying them.
//
// A Text is valid until its bytes are written again, and so are all parts of it. Who keeps a part asks for one that lasts: the
// first time all of the text is copied, once, and from then on parts are parts of that.
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

// String is all of it, borrowed.
func (t *Text) String() string { return t.text }

// Lasting returns a part of the text as one that lasts. What is no part of it is copied by itself.
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
