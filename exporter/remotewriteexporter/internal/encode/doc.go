// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package encode turns pmetric into finished Remote Write requests.
//
// Each data point is recognised by its place: where the same point was last time, after the same neighbour. A recognised
// point has its sorted, sanitised labels ready as symbols, so Add only appends numbers to columns, one set
// per shard and tenant. Flush orders these series by series across targets, which makes them compress well,
// and encodes and compresses them in one pass.
//
// A series is stored without its resource: a thousand similar targets share their entries, and each target adds
// only its own few labels. Everything held is limited by the Config; Expire forgets what was idle.
//
// The parts are separate packages whose imports go one way: docs/design/091 lists them. This package walks
// incoming metrics, and has the Encoder, which owns one of each part.
//
// Points of one series keep their order as long as the calls of Add that bring them do: a series is always in
// the same shard, and Flush keeps the order within it. Add and Flush may be called from any goroutine; blocks of
// one shard and tenant are in order if their Flush calls are made one after the other.
package encode
