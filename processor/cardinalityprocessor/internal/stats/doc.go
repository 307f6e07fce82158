// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package stats estimates what series consist of: how many each metric and each label has, how many there would be
// without a label, and examples of them.
//
// A Book keeps only sketches, and short copies of names and of a sample of series.
//
// It takes at most MaxBytes, whatever it is fed. Counts of distinct values have a standard error of 3.3 %, or 5.6 % in a flood
// that was not examined as a whole, shares of the sample one of 1/√(series of the sample that have it).
package stats
