// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"iter"
	"strings"
)

// Documents splits a stream of YAML. Each has as many empty lines before it as there are lines before it in the stream, so that the parser counts
// right. That may be much, so they are made one at a time.
func Documents(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		begin, number, before := 0, 0, 0
		document := func(end int) []byte {
			return append(bytes.Repeat([]byte("\n"), before), text[begin:end]...)
		}
		at := 0
		for line := range bytes.Lines(text) {
			number++
			if beginsDocument(line) {
				if !yield(document(at)) {
					return
				}
				behind := bytes.TrimLeft(line[len(marker):], " \t")
				begin, before = at+len(line)-len(behind), number-1
			}
			at += len(line)
		}
		yield(document(len(text)))
	}
}

const marker = "---"

// beginsDocument tells the marker of a document, which may have the document behind it, from text that only looks like it.
func beginsDocument(line []byte) bool {
	rest, marked := bytes.CutPrefix(line, []byte(marker))
	return marked && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// FurtherDocument is the line of the first document that nobody reads, 0 for none.
func FurtherDocument(text []byte) int {
	if !bytes.Contains(text, []byte("\n---")) {
		return 0
	}
	first := true
	for document := range Documents(text) {
		root, err := ParseLoosely(document)
		switch {
		case err != nil || IsNull(root):
		case first:
			first = false
		default:
			return root.Line
		}
	}
	return 0
}

// BeginsWithLetter tells what may be a key or the name of a flag.
func BeginsWithLetter(text []byte) bool {
	return len(text) > 0 && (text[0] >= 'a' && text[0] <= 'z' || text[0] >= 'A' && text[0] <= 'Z')
}
