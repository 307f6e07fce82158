// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A generator makes pages that change a little from one to the next.
type generator struct {
	*rand.Rand

	openMetrics bool
	whole       bool // only whole families and points are added and removed
	families    []generated
	made        int
}

type generated struct {
	name, typ, unit string
	points          []string // labels
	bounds          int
	timed           bool
	created         bool
}

func newGenerator(seed uint64, openMetrics, whole bool) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), openMetrics: openMetrics, whole: whole}
	for range 3 + g.IntN(5) {
		g.grow()
	}
	return g
}

func (g *generator) grow() {
	g.made++
	types := []string{"counter", "gauge", "histogram", "summary", "untyped", ""}
	if g.openMetrics {
		types = []string{"counter", "gauge", "histogram", "summary", "unknown", "", "info", "stateset", "gaugehistogram"}
	}
	f := generated{
		name: fmt.Sprintf("m%d", g.made), typ: types[g.IntN(len(types))], bounds: 1 + g.IntN(4),
		timed: g.IntN(6) == 0, created: g.IntN(2) == 0,
	}
	if g.openMetrics && g.IntN(2) == 0 {
		f.unit = "seconds"
		f.name += "_seconds"
	}
	for range 1 + g.IntN(4) {
		f.points = append(f.points, g.labels())
	}
	g.families = append(g.families, f)
}

func (g *generator) labels() string {
	g.made++
	var s strings.Builder
	fmt.Fprintf(&s, `id="%d"`, g.made)
	for _, n := range []string{"zone", "otel_scope_name", "instance", "a", "é"} {
		if g.IntN(5) == 0 {
			if n == "é" {
				n = `"é"`
			}
			fmt.Fprintf(&s, `,%s="v%d\n\"\\"`, n, g.IntN(3))
		}
	}
	return s.String()
}

// change modifies the next page.
func (g *generator) change() {
	switch g.IntN(9) {
	case 0:
		g.grow()
	case 1:
		if len(g.families) > 1 {
			i := g.IntN(len(g.families))
			g.families = slices.Delete(g.families, i, i+1)
		}
	case 2:
		f := &g.families[g.IntN(len(g.families))]
		f.points = slices.Insert(f.points, g.IntN(len(f.points)+1), g.labels())
	case 3:
		f := &g.families[g.IntN(len(g.families))]
		if len(f.points) > 1 {
			i := g.IntN(len(f.points))
			f.points = slices.Delete(f.points, i, i+1)
		}
	case 4:
		g.Shuffle(len(g.families), func(i, j int) { g.families[i], g.families[j] = g.families[j], g.families[i] })
	case 5:
		if !g.whole {
			f := &g.families[g.IntN(len(g.families))]
			f.bounds = 1 + g.IntN(4)
			f.created = !f.created
		}
	default:
	}
}

func (g *generator) page() string {
	var b strings.Builder
	for i := range g.families {
		g.family(&b, &g.families[i])
	}
	if g.openMetrics {
		b.WriteString("# EOF\n")
	}
	return b.String()
}

func (g *generator) family(b *strings.Builder, f *generated) {
	if f.typ != "" {
		fmt.Fprintf(b, "# HELP %s Help of %s.\n# TYPE %s %s\n", f.name, f.name, f.name, f.typ)
		if f.unit != "" {
			fmt.Fprintf(b, "# UNIT %s %s\n", f.name, f.unit)
		}
	}
	for _, p := range f.points {
		row := func(suffix, more string, v any) {
			fmt.Fprintf(b, "%s%s{%s%s} %v", f.name, suffix, p, more, v)
			if f.timed {
				if g.openMetrics {
					b.WriteString(" 1520879607.789")
				} else {
					b.WriteString(" 1520879607789")
				}
			}
			if g.openMetrics && g.IntN(6) == 0 && (suffix == "_total" || suffix == "_bucket") {
				fmt.Fprintf(b, ` # {trace_id="0102030405060708090a0b0c0d0e0f%02x"} %v`, g.IntN(256), g.IntN(9))
				if g.IntN(2) == 0 {
					b.WriteString(" 1520879607.5")
				}
			}
			b.WriteByte('\n')
		}
		g.point(row, f)
	}
}

func (g *generator) point(row func(suffix, more string, v any), f *generated) {
	values := []any{g.IntN(1000), g.Float64() * 1e6, g.NormFloat64(), "NaN", "+Inf", 0, 1, 1e300, "1.5e+09"}
	switch f.typ {
	case "histogram":
		n := 0
		for i := range f.bounds {
			n += g.IntN(5)
			row("_bucket", fmt.Sprintf(`,le="%d"`, i), n)
		}
		row("_bucket", `,le="+Inf"`, n+1)
		row("_sum", "", g.Float64())
		row("_count", "", n+1)
	case "summary":
		for i := range f.bounds {
			row("", fmt.Sprintf(`,quantile="0.%d"`, i), values[g.IntN(len(values))])
		}
		row("_sum", "", g.Float64())
		row("_count", "", g.IntN(100))
	case "counter":
		suffix := ""
		if g.openMetrics {
			suffix = "_total"
		}
		row(suffix, "", g.IntN(1000))
	case "info":
		row("_info", "", 1)
	case "stateset":
		row("", fmt.Sprintf(`,%s="on"`, f.name), g.IntN(2))
	case "gaugehistogram":
		row("_bucket", `,le="+Inf"`, g.IntN(9))
		row("_gcount", "", 1)
	default:
		row("", "", values[g.IntN(len(values))])
	}
	if f.created && g.openMetrics && (f.typ == "counter" || f.typ == "histogram" || f.typ == "summary") {
		row("_created", "", 1520872607.123)
	}
}
