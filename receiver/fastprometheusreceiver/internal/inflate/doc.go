// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package inflate decodes gzip and raw deflate bodies that are in memory as a whole.
//
// A Decoder borrows its input and writes into its caller's buffer, whole or a window at a time; it keeps no output
// of its own and does not allocate once the buffer is large enough. It never writes more than the limit it is given
// plus a fixed slack, whatever the input claims of itself.
//
// Having all input at hand is what makes it fast: bits are refilled eight bytes at a time, the output is its own
// dictionary, and matches are copied in words that may run over their end into the slack.
package inflate
