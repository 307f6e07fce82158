// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package promwrite is the receiving half of Prometheus Remote Write, versions
// 1.0 and 2.0: what the headers mean, how a body is decompressed, and how its
// bytes become series. Both versions decode into one shape.
//
// A Decoder owns the slices it yields and overwrites them in its next Decode.
// The strings it yields alias one private copy of the body, made once per
// request: they may be kept for ever, at the price of keeping that copy.
// Nothing else allocates after warm-up. Each instead yields one series after
// another, whose strings alias the body itself.
//
// Bytes from the network are never trusted: each length is checked against the
// remaining bytes, each symbol reference against the table, and the decoded
// size of a compressed body against a limit before memory for it is allocated. The
// size of a decoded request is proportional to its body, at the very worst some
// 40 bytes for each of its bytes.
package promwrite
