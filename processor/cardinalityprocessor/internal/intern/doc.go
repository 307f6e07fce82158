// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package intern lets equal strings share one memory.
//
// A Table owns what it returns: copies, not parts of the caller's buffers. It may be used by many at once.
//
// It holds at most MaxBytes, in two generations: what is not asked for during one is forgotten with it. A string is taken
// in only when it is seen for the second time, and a key whose values hardly ever come again is left alone.
package intern
