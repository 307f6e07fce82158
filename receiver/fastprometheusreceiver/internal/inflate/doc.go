// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package inflate decodes gzip and raw deflate bodies that are completely in memory.
//
// A Decoder borrows its input and writes into its caller's buffer, all at once or a window at a time. It keeps no output
// and does not allocate once the buffer is large enough. It never writes more than the given limit
// plus a fixed slack, whatever the input claims.
//
// It is fast because it has all input: bits are refilled eight bytes at a time, the output is its own
// dictionary, and matches are copied in words that may run past their end into the slack.
package inflate
