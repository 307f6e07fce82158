// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A hostileGenerator makes pages whose lines need not be consistent: types that change or come late, families in two
// pieces, duplicates, histograms with missing or wrong parts, timestamps, and labels that are many or that rules
// remove.
type hostileGenerator struct {
	*rand.Rand

	media string
	helps bool // a help text keeps the earlier type
	lines []hostileLine
	round int // number of the round, from which values are derived
}

type hostileLine struct {
	text string // without the value
	time string
	rest string // after the value and the timestamp: an exemplar
}

func newHostileGenerator(seed uint64, media string) *hostileGenerator {
	g := &hostileGenerator{Rand: rand.New(rand.NewPCG(seed, 11)), media: media, helps: seed/4%2 == 0}
	for range 3 + g.IntN(25) {
		g.insert()
	}
	return g
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (g *hostileGenerator) family() string {
	return one(g.Rand, "a", "b", "c", "c_total", "h", "h", "s", "s", "i", `"é.x"`)
}

// insert adds a group of lines, or a single line without context.
func (g *hostileGenerator) insert() {
	var lines []hostileLine
	add := func(text string) { lines = append(lines, hostileLine{text: text}) }
	switch g.IntN(12) {
	case 0, 1, 2:
		add(g.metadata())
	case 3, 4:
		ls := g.labels()
		h := one(g.Rand, "h", "h", "c")
		bounds := [][]string{{"1", "2", "+Inf"}, {"0.5", "1.0"}, {"1", "+Inf", "1.0"}, {"2", "1", "x", "NaN"}}[g.IntN(4)]
		for _, bound := range bounds {
			add(series(h+"_bucket", append(slices.Clone(ls), `le="`+bound+`"`)))
		}
		for _, suffix := range []string{"_sum", "_count", "_created"} {
			if g.IntN(5) > 0 {
				add(series(h+suffix, ls))
			}
		}
	case 5, 6:
		ls := g.labels()
		for _, q := range []string{"0.5", "0.9"} {
			add(series("s", append(slices.Clone(ls), `quantile="`+q+`"`)))
		}
		for _, suffix := range []string{"_sum", "_count"} {
			if g.IntN(5) > 0 {
				add(series("s"+suffix, ls))
			}
		}
	default:
		add(series(g.family()+one(g.Rand, "", "", "", "_total", "_created", "_count", "_sum", "_info", "_bucket"), g.labels()))
		if g.IntN(25) == 0 {
			add(series("target_info", g.labels()))
		}
	}
	at := g.IntN(len(g.lines) + 1)
	for i := range lines {
		l := &lines[i]
		if strings.HasPrefix(l.text, "#") {
			continue
		}
		if g.IntN(12) == 0 {
			ms := one(g.Rand, 1_600_000_000_500, 1_600_000_001_500, 4_000_000_000_000)
			if l.time = fmt.Sprintf(" %d", ms); g.media == typeOM {
				l.time = fmt.Sprintf(" %d.%03d", ms/1000, ms%1000)
			}
		}
		if g.media == typeOM && g.IntN(8) == 0 {
			l.rest = fmt.Sprintf(` # {trace_id="%032x",k="v"} 1.5`, g.IntN(9))
		}
	}
	g.lines = slices.Insert(g.lines, at, lines...)
}

func (g *hostileGenerator) metadata() string {
	f := g.family()
	if g.helps && g.IntN(4) == 0 {
		return fmt.Sprintf("# HELP %s Help %d.", f, g.IntN(2))
	}
	types := []string{"counter", "gauge", "histogram", "summary", "untyped"}
	if g.media == typeOM {
		types = []string{"counter", "gauge", "histogram", "summary", "unknown", "info", "stateset", "gaugehistogram"}
	}
	switch f { // mostly as the name says
	case "h":
		types = append(types, "histogram", "histogram", "histogram", "histogram", "histogram", "histogram")
	case "s":
		types = append(types, "summary", "summary", "summary", "summary", "summary", "summary")
	default:
	}
	return fmt.Sprintf("# TYPE %s %s", f, one(g.Rand, types...))
}

func (g *hostileGenerator) labels() (ls []string) {
	for _, n := range []string{"id", "x", "zone", "otel_scope_name", "otel_scope_k", "job", "instance", "empty", "le", `"é.l"`} {
		switch {
		case n == "id" || n == "x" || n == "zone":
			if g.IntN(3) == 0 {
				ls = append(ls, fmt.Sprintf("%s=\"v%d\"", n, g.IntN(3)))
			}
		case g.IntN(16) > 0:
		case n == "empty":
			ls = append(ls, `empty=""`)
		case n == "le":
			ls = append(ls, `le="1"`)
		default:
			ls = append(ls, fmt.Sprintf(`%s="v%d\n"`, n, g.IntN(2)))
		}
	}
	switch g.IntN(60) {
	case 0: // more than are handled individually
		for i := range 128 {
			ls = append(ls, fmt.Sprintf("l%d=\"v%d\"", i, i%7))
		}
	case 1:
		g.Shuffle(len(ls), func(i, j int) { ls[i], ls[j] = ls[j], ls[i] })
	default:
	}
	return ls
}

func series(name string, labels []string) string {
	if strings.HasPrefix(name, `"`) {
		base, suffix, _ := strings.Cut(name[1:], `"`)
		return "{" + strings.Join(append([]string{`"` + base + suffix + `"`}, labels...), ",") + "}"
	}
	if len(labels) == 0 {
		return name
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}

// change modifies the next page.
func (g *hostileGenerator) change() {
	for range 1 + g.IntN(3) {
		n := len(g.lines)
		if n == 0 {
			g.insert()
			continue
		}
		i, j := g.IntN(n), g.IntN(n)
		switch g.IntN(10) {
		case 0, 1:
			g.insert()
		case 2, 3:
			g.lines = slices.Delete(g.lines, i, min(n, i+1+g.IntN(4)))
		case 4:
			g.lines = slices.Insert(g.lines, i, g.lines[j])
		case 5:
			g.lines[i], g.lines[j] = g.lines[j], g.lines[i]
		case 6:
			if strings.HasPrefix(g.lines[i].text, "#") {
				g.lines[i].text = g.metadata()
			} else {
				g.lines[i].time = ""
			}
		case 7:
			k := i + g.IntN(n-i)
			moved := slices.Clone(g.lines[i:k])
			g.lines = slices.Insert(slices.Delete(g.lines, i, k), g.IntN(n-len(moved)+1), moved...)
		default:
		}
	}
}

// page renders the lines with new values.
func (g *hostileGenerator) page() string {
	g.round++
	var b strings.Builder
	for i, l := range g.lines {
		b.WriteString(l.text)
		if !strings.HasPrefix(l.text, "#") {
			fmt.Fprintf(&b, " %s%s%s", g.value(i, l.text), l.time, l.rest)
		}
		b.WriteByte('\n')
	}
	switch g.IntN(20) {
	case 0:
		b.WriteString("broken{\n")
	case 1:
		return errorPage
	case 2:
		return ""
	default:
	}
	if g.media == typeOM {
		b.WriteString("# EOF\n")
	}
	return b.String()
}

func (g *hostileGenerator) value(i int, text string) string {
	_, le, isBucket := strings.Cut(text, `le="`)
	switch {
	case g.IntN(25) == 0:
		return one(g.Rand, "NaN", "+Inf", "-1", "0")
	case isBucket:
		le, _, _ = strings.Cut(le, `"`)
		switch le {
		case "+Inf":
			return fmt.Sprint(100 + g.round)
		default:
			return fmt.Sprint(10 * len(le))
		}
	case strings.Contains(text, "_count"):
		return fmt.Sprint(100 + g.round)
	case strings.Contains(text, "_created"):
		return fmt.Sprint(1_500_000_000 + g.round)
	default:
		return fmt.Sprint(1000*g.round + i)
	}
}
