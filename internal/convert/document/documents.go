// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package document

import "bytes"

// Documents splits a stream of YAML. Each has as many empty lines before it as there are lines before it in the stream.
func Documents(text []byte) [][]byte {
	var all [][]byte
	var current []byte
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if bytes.HasPrefix(line, []byte("---")) {
			all = append(all, current)
			current = bytes.Repeat([]byte("\n"), number)
			continue
		}
		current = append(current, line...)
	}
	return append(all, current)
}

// FurtherDocument is the line of the first document that nobody reads, 0 for none.
func FurtherDocument(text []byte) int {
	if !bytes.Contains(text, []byte("\n---")) {
		return 0
	}
	first := true
	for _, document := range Documents(text) {
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
