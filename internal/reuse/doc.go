// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package reuse fills the same memory with the metrics of one request after the other, for receivers of which package handback
// says that they may.
//
// Metrics are put together of elements that are taken from lists in the order in which they are needed: resources, scopes, gauges,
// sums and points of numbers. When they come back, the next ones are put together of the same elements, whatever has become of the
// slices that they were in: who has taken parts out or has added some is not in the way. That attributes which are shared
// have been left alone is seen by their number, and by a checksum of one in sixteen, others in turn: a component that changes them
// in place is found after so many requests at the latest.
//
// Metrics that come together each time are a Part: it is placed, taken back and looked through as one, and handed on as one that a loan tells of.
//
// No processor of our distributions can be found so. Attributes are shared only where handback.Ask finds nothing in the way, which
// leaves memory_limiter and cardinality: neither writes to attributes that it was given. All others say nothing, or say what they
// change, and get attributes of their own. The checksum is there for Collectors that others build, with a component that promises to let
// go and does not keep its promise.
//
// Everything else, such as histograms, is made anew where it is needed, and is the garbage collector's.
package reuse
