// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package stream compares streaming with unary OTLP: it repeats the table of the original proposal, and measures whole
// Collectors that relay data, and the bytes of metrics on the wire.
//
// Each row of the table is a separate process that is both client and server, as in the proposal; the network with
// latency is another process. Rows differ only in the variant, so that their ratios within a run are meaningful.
package stream
