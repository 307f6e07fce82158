// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package typo suggests which existing name was meant by an unknown one,
// and finds the place in the user's files.
package typo

import "fmt"

// Meant returns the key that was probably meant, as the end of a sentence, or "".
func Meant(key string, known []string) string {
	if near := nearest(key, known); near != "" {
		return fmt.Sprintf(": did you mean `%s`?", near)
	}
	return ""
}

// nearest returns the key with the fewest changes, if these are few.
func nearest(key string, known []string) (near string) {
	fewest := max(1, len(key)/4) + 1
	for _, candidate := range known {
		if n := changes(key, candidate); n < fewest {
			near, fewest = candidate, n
		}
	}
	return near
}

// changes returns how many letters must be inserted, removed, replaced or swapped with the next to turn one text into
// another.
func changes(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
