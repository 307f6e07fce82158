// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package oversize finds out whether a server refuses a request for its size, if only the text of the answer says so.
package oversize

import "regexp"

var words = regexp.MustCompile(`(?i)` +
	// Go's own limit of bodies, gRPC's of messages, Cortex, proxies.
	`\b(?:request|message|body|entity|payload)(?: size)?(?: is)? (?:too (?:large|big)|larger than)\b|` +
	// VictoriaMetrics: of a request, of its content in snappy, in zstd with and without cgo.
	`\btoo (?:large|big) (?:(?:un)?packed |decompressed )?(?:request|message|body|payload|data size)\b|` +
	`\bdecompressed (?:source )?size(?:: \d+)? exceeds\b`)

// Says reports whether the text of a refusal is about the size of the whole request. A limit on a part of its content,
// such as a label, is not meant.
func Says(text string) bool { return words.MatchString(text) }
