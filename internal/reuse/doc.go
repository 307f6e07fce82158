// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package reuse fills the same memory with the metrics of one request after the other, for receivers that may do so according to
// package handback.
//
// Metrics are built of elements that are taken from lists in the order in which they are needed: resources, scopes, gauges,
// sums and points of numbers. When they are returned, the next metrics are built of the same elements, whatever has become of the
// slices that they were in: a component may have removed parts or added some. Shared attributes are checked for changes
// by their number, and one in sixteen by a checksum, others in turn: a component that changes them
// in place is found after that many requests at the latest.
//
// Metrics that arrive together each time are a Part: it is placed, taken back and checked as one, and a loan lists it for the components behind.
//
// No processor of our distributions can be found like this. Attributes are shared only if handback.Ask finds no obstacle, which
// leaves memory_limiter and cardinality: neither writes to attributes that it was given. All others say nothing, or say what they
// change, and get attributes of their own. The checksum is for Collectors that others build, with a component that promises to keep
// nothing and breaks its promise.
//
// Everything else, such as histograms, is made anew when it is needed, and freed by the garbage collector.
package reuse
