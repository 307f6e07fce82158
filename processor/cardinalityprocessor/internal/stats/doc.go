// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package stats estimates what series are made of: how many each metric and each label has, how many there would be
// without a label, and which they are, for example.
//
// A Book keeps nothing of what it is told but sketches, and short copies of names and of a sample of series.
//
// It takes MaxBytes at most, whatever it is told. Counts of distinct things have a standard error of 3.3 %, or 5.6 % in a flood
// that was not looked at as a whole, shares of the sample one of 1/√(series of the sample that have it).
package stats
