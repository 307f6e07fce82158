// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"math"
	"strconv"
	"strings"
)

// Numbers in sentences, as the page writes them.

// short is a number with three digits at most: 45.5k, 0.31, 1.2M.
func short(n float64) string {
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

func perSecondOf(n float64) string { return short(n) + "/s" }

// grouped is a count in full: 12,345.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
