// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package expo

// exact holds the powers of ten a float64 holds exactly.
var exact = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// FastNumber parses the decimal number at the start of b, up to the blank or line break after it, and returns where
// that is. It is exact or returns false: digits that fit 53 bits, scaled once by an exact power of ten, round as
// strconv.ParseFloat rounds.
func FastNumber(b []byte) (v float64, end int, ok bool) {
	return fastNumber(b, 0)
}

func fastNumber(b []byte, i int) (v float64, end int, ok bool) {
	neg := false
	if i < len(b) && b[i] == '-' {
		neg = true
		i++
	}
	var m uint64
	start := i
	for ; i < len(b); i++ {
		c := b[i] - '0'
		if c > 9 {
			break
		}
		m = m*10 + uint64(c)
	}
	digits, scale := i-start, 0
	if i < len(b) && b[i] == '.' {
		point := i + 1
		for i = point; i < len(b); i++ {
			c := b[i] - '0'
			if c > 9 {
				break
			}
			m = m*10 + uint64(c)
		}
		scale = point - i
		digits -= scale
	}
	if digits == 0 || digits > 19 || m > 1<<53 { // 19 digits cannot overflow m
		return 0, 0, false
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		sign := 1
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			if b[i] == '-' {
				sign = -1
			}
			i++
		}
		x, from := 0, i
		for ; i < len(b) && i < from+4; i++ {
			c := b[i] - '0'
			if c > 9 {
				break
			}
			x = x*10 + int(c)
		}
		if i == from {
			return 0, 0, false
		}
		scale += sign * x
	}
	if i >= len(b) || b[i] != '\n' && b[i] != ' ' && b[i] != '\t' {
		return 0, 0, false
	}
	v = float64(m)
	switch {
	case scale == 0:
	case scale > 0 && scale < len(exact):
		v *= exact[scale]
	case scale < 0 && -scale < len(exact):
		v /= exact[-scale]
	default:
		return 0, 0, false
	}
	if neg {
		v = -v
	}
	return v, i, true
}
