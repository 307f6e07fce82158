// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package slab

// Scalar is what kind of value there is in eight bytes.
type Scalar uint8

// The kinds of values.
const (
	NoScalar Scalar = iota
	Int
	Double
	Bool
)
