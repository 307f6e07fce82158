// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package stream measures streaming against unary OTLP: the table of the
// original proposal made again, whole Collectors that hand data on, and the
// bytes that metrics take.
//
// Each row of the table is a process of its own, which is client and server at
// once, as the proposal's were; a network that delays is another. What differs
// between rows is one variant, so that ratios within a run mean something.
package stream
