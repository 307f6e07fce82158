// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package encode turns pmetric into finished Remote Write requests.
//
// Each data point is recognised by its place: where the same point stood last time, after the same neighbour. What
// is recognised has its sorted, sanitised labels ready as symbols, so Add only appends numbers to columns, one set
// per shard and tenant. Flush lays these out series by series across targets, which is what makes them compress,
// and encodes and compresses them in one pass.
//
// A series is known without its resource: a thousand targets of one shape share their entries, and each target adds
// no more than its own few labels. Everything held is bounded by the Config; Expire forgets what was idle.
//
// The parts are packages of their own, whose imports go one way: docs/design/091 lists them. This package has the walk through
// incoming metrics, and the Encoder, which owns one of each part.
//
// Points of one series keep their order as long as the calls of Add that bring them do: a series always lands in
// the same shard, and Flush keeps the order within it. Add and Flush may be called from any goroutine; blocks of
// one shard and tenant are in order if their Flush calls are made one after the other.
package encode
