// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package delta encodes the metrics of a stream as what changed in them.
//
// A scrape is the last scrape of its target with other numbers, and the pages of
// targets of one kind are the same text. So both ends of a stream keep, for each
// resource, a row: its numbers, and a shape, which is all else and is shared by
// the rows it fits. What is sent of a resource that comes again is its row and
// how its numbers have moved.
//
// An Encoder and a Decoder own what they keep, and copy what they are given.
// What a history takes is bounded by a limit that both ends know; the encoder
// decides what is forgotten, and says so. Neither is safe for concurrent use.
package delta
