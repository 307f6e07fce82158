// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package stencil encodes metrics that it knows by copying what they were.
//
// A scrape is the last scrape of its target with other numbers. So of each
// resource the encoded metrics are kept, with zeros where numbers were: a
// stencil, which targets that are alike share. When the metrics come again, the
// stencil is copied, and while the numbers are put in, all else is compared with
// it: names, attributes, flags, which fields there are. A stencil is only ever a
// guess. Where it is wrong, pdata's marshaler does the work, and what it made
// is learned.
//
//	Encoder -> shelf: resource -> stencil
//	   |
//	   +----> filling: puts in numbers, compares all else
//
// The bytes are those of pdata's marshaler, but that -0 stays what it is, as package
// minuszero has it. It writes messages from their end to
// their beginning, and what is compared here is in that order. Metrics that are
// encoded both ways when the program starts tell whether that still holds; if
// not, as may be after an update of pdata, nothing is known any more. Package
// slab reads pdata's memory; where it cannot, nothing is known either.
package stencil
