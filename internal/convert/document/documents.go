// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"iter"
	"strings"
)

// Documents splits a stream of YAML. Each document is preceded by as many empty lines as there are lines before it in
// the stream, so that the parser's line numbers are right. That may be much, so they are made one at a time.
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

// beginsDocument distinguishes the marker of a document, which the document may follow on the same line, from text that
// only looks like it.
func beginsDocument(line []byte) bool {
	rest, marked := bytes.CutPrefix(line, []byte(marker))
	return marked && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// FurtherDocument returns the line of the first document that is ignored, 0 if there is none.
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

// BeginsWithLetter recognises what may be a key or the name of a flag.
func BeginsWithLetter(text []byte) bool {
	return len(text) > 0 && (text[0] >= 'a' && text[0] <= 'z' || text[0] >= 'A' && text[0] <= 'Z')
}
