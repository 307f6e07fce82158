// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package delta encodes the metrics of a stream as their changes.
//
// A scrape is the last scrape of its target with other numbers, and the pages of
// targets of one kind have the same text. So both ends of a stream keep a row for
// each resource: its numbers, and a shape, which is everything else and is shared by
// the rows it fits. For a known resource, its row and the changes of
// its numbers are sent.
//
// An Encoder and a Decoder own what they keep, and copy what they are given.
// The memory of a history is limited, and both ends know the limit; the encoder
// decides what is forgotten, and says so. Neither is safe for concurrent use.
package delta
