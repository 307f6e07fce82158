// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package prose writes numbers and names in sentences, as the page does.
package prose

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Short formats a number with at most three digits: 45.5k, 0.31, 1.2M.
func Short(n float64) string {
	abs := math.Abs(n)
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if abs >= unit.size*0.9995 {
			return digits(n/unit.size) + unit.name
		}
	}
	return digits(n)
}

func digits(n float64) string {
	places := 2
	switch abs := math.Abs(n); {
	case abs >= 99.95 || n == math.Trunc(n):
		places = 0
	case abs >= 9.995:
		places = 1
	}
	text := strconv.FormatFloat(n, 'f', places, 64)
	if places > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// PerSecond formats a rate.
func PerSecond(n float64) string { return Short(n) + "/s" }

// Percent formats a share from 0 to 1.
func Percent(share float64) string {
	switch {
	case share > 0 && share < 0.001:
		return "<0.1%"
	case share < 0.1:
		return fmt.Sprintf("%.2g%%", share*100)
	}
	return fmt.Sprintf("%.0f%%", share*100)
}

// Count formats a whole number with all its digits: 12,345.
func Count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Plural formats a number of things.
func Plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Count(n) + " " + thing + "s"
}

// Reason returns the name of a reason in a readable form.
func Reason(name string) string {
	if name == "" {
		return "other errors"
	}
	return strings.ReplaceAll(name, "_", " ")
}

// longestName is the size in bytes that a sentence has for the name of a label or a metric.
const longestName = 100

// Name shortens a name that users chose.
func Name(name string) string { return Cut(name, longestName) }

// Cut shortens a text to n bytes.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
