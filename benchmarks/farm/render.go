// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package farm

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/godwit-otel/godwit/benchmarks/tally"
)

// hash is the only source of randomness: the same seeds give the same farm.
func hash(seeds ...int) uint64 {
	x := uint64(0x243f6a8885a308d3)
	for _, s := range seeds {
		x += uint64(s) + 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}

// unit maps a hash to [0, 1).
func unit(h uint64) float64 { return float64(h>>11) / (1 << 53) }

func round(v float64, decimals int) float64 {
	p := math.Pow10(decimals)
	return math.Round(v*p) / p
}

// word returns a name for i, always the same.
func word(i int) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b strings.Builder
	for h := hash(0, 15, i); b.Len() < 6; h /= 70 {
		b.WriteByte(consonants[h%14])
		b.WriteByte(vowels[h/14%5])
	}
	return b.String() + strconv.Itoa(i)
}

// decimals returns the number of digits after the decimal point of v.
func decimals(v float64) int {
	_, fraction, _ := strings.Cut(strconv.FormatFloat(v, 'f', -1, 64), ".")
	return min(len(fraction), 9)
}

// at returns the value of line i on a target at a step.
//
// When the steps are repeated, counters decrease, as after a restart of the process.
func (l *line) at(target, i, step int) float64 {
	if !l.changes {
		step = 0
	}
	switch l.kind {
	case counted, summed:
		h := hash(1, target, l.group)
		observations := float64(h%50_000 + uint64(step)*(h%97+1))
		if l.kind == summed {
			return round(observations*l.value, 6)
		}
		return math.Floor(observations * l.value)
	case created:
		return l.value + float64(target)
	}
	h := hash(1, target, i)
	if l.value == math.Trunc(l.value) && math.Abs(l.value) < 1000 { // flags, sizes, small counts
		return l.value + float64(step*int(h%3+1))
	}
	return scaled(l.value, 0.5+unit(h)+float64(step)*(unit(h<<7)+0.01)*0.001)
}

// scaled returns v times by, as a whole number if v is whole, otherwise with as many decimals.
func scaled(v, by float64) float64 {
	if v != math.Trunc(v) {
		return round(v*by, decimals(v))
	}
	if math.Mod(v, 4096) == 0 { // bytes of whole memory pages
		return math.Round(v*by/4096) * 4096
	}
	return math.Round(v * by)
}

// render returns the page of a target at a step, and adds its samples to t.
func (p *Page) render(f Format, target, step int, t *tally.Tally) (dst []byte) {
	for i := range p.lines {
		l := &p.lines[i]
		if l.kind == comment {
			if l.only == anyFormat || l.only == f {
				dst = append(append(dst, l.series...), '\n')
			}
			continue
		}
		if l.kind == created && f != OpenMetrics {
			continue
		}
		v := l.at(target, i, step)
		if l.isSample() && !l.dropped {
			t.Add(v)
		}
		if l.varies {
			dst = expand(dst, l.series, target, step)
		} else {
			dst = append(dst, l.series...)
		}
		dst = append(dst, ' ')
		dst = strconv.AppendFloat(dst, v, 'g', -1, 64)
		if l.exemplar > 0 && f == OpenMetrics {
			seen := step // an exemplar stays until there is another observation
			if !l.changes {
				seen = 0
			}
			h := hash(2, target, i, seen)
			dst = fmt.Appendf(dst, ` # {trace_id="%016x%016x",span_id="%016x"} %g`, h, h*3, h*5, l.exemplar)
		}
		dst = append(dst, '\n')
	}
	return dst
}

// tail appends what is made for each scrape, the short-lived series and the number of the scrape, and adds these
// samples to t.
func tail(dst []byte, f Format, target, scrape, churn int, t *tally.Tally) []byte {
	if churn > 0 {
		dst = append(dst, "# HELP farm_churn Series that live for one scrape.\n# TYPE farm_churn gauge\n"...)
	}
	for i := range churn {
		h := hash(3, target, scrape, i)
		dst = fmt.Appendf(dst, "farm_churn{namespace=\"team-%d\",pod=\"api-%08x-%05x\",generation=\"%d\"} %d\n",
			i%20, h>>32, h&0xfffff, scrape, h%1000)
		t.Add(float64(h % 1000))
	}
	dst = append(dst, "# HELP "+tally.ScrapeID+" Number of the scrape.\n# TYPE "+tally.ScrapeID+" gauge\n"+tally.ScrapeID+" "...)
	dst = append(strconv.AppendInt(dst, int64(scrape), 10), '\n')
	t.Add(float64(scrape))
	if f == OpenMetrics {
		dst = append(dst, "# EOF\n"...)
	}
	return dst
}
