// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package slab allocates many points and attributes at a time and puts them
// into pdata.
//
// pdata allocates each point, each list of attributes and each value separately,
// which is most of the cost of decoding: eleven allocations for a point with
// eight strings. Here they are pieces of slabs, one for some
// dozens of points. In return a slab is kept as long as any piece of it.
//
// Setting a value in pdata allocates again. A caller that owns the data exclusively can change it in place here.
//
// For that, pdata's memory is written directly, past its API. When the program
// starts, this package compares the layout of pdata with the one it expects. If
// it differs, as it may after an update, pdata's API is used for everything, as
// it is in builds with the tag purego.
package slab
