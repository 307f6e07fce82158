// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package slab puts into pdata what is allocated for many points and attributes
// at a time.
//
// pdata allocates each point, each list of attributes and each value by itself,
// and most of what decoding costs is that: eleven allocations for a point with
// eight strings. Here they are pieces of slabs, of which there is one for some
// dozens of points. In return a slab is kept as long as any piece of it.
//
// A value that is set anew is another allocation in pdata. Who knows that the data is his alone has it changed where it is.
//
// For that, pdata's memory is written directly, past its API. What it looks like is
// compared with what this package takes it for when the program starts; where
// that differs, as it may after an update, pdata's API is used for all, and so it
// is when built with the tag purego.
package slab
