// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package stencil encodes known metrics by copying their previous encoding.
//
// A scrape is the last scrape of its target with other numbers. So the encoded
// metrics of each resource are kept, with zeros in place of numbers: a
// stencil, which identical targets share. When the metrics return, the
// stencil is copied and the numbers are filled in. Everything else is compared with
// it: names, attributes, flags, which fields exist. A stencil is only
// a guess. If it is wrong, pdata's marshaler does the work, and its result
// is learned.
//
//	Encoder -> shelf: resource -> stencil
//	   |
//	   +----> filling: fills in numbers, compares everything else
//
// The bytes are those of pdata's marshaler, except that -0 is kept, see package
// minuszero. The marshaler writes messages from their end to
// their beginning, and the comparison here has that order. When the program starts, metrics are
// encoded both ways to check that this still holds. If
// not, as may happen after an update of pdata, nothing is known any more. Package
// slab reads pdata's memory; if it cannot, nothing is known either.
package stencil
