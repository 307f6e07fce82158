// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package known adds and compares numbers that may be unknown. Nil is unknown: in JSON it is null, and a page shows that
// it is unknown, where a zero would say that there is nothing.
package known

import "time"

// Number returns a known number.
func Number(f float64) *float64 { return &f }

// Time returns t, nil for the zero time.
func Time(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Sum adds numbers, ignoring an unknown one. The sum of two unknown ones is unknown.
func Sum(a, b *float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return Number(*a + *b)
}

// Most returns the greater of two numbers, or the one that is known.
func Most(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}
