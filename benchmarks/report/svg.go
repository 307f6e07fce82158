// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// style uses the reader's font, and colours for light and dark pages.
const style = `<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.soft { fill: #59636e; font-size: 12px }
.grid { stroke: #d1d9e0; stroke-width: 1 }
.line { stroke-width: 2.5; stroke-linejoin: round } .second { stroke-dasharray: 7 4 }
.godwit { fill: #0969da; stroke: #0969da } .vmagent { fill: #8250df; stroke: #8250df }
.prometheus { fill: #cf4a22; stroke: #cf4a22 } .collector { fill: #9a6700; stroke: #9a6700 }
rect { stroke: none } .range { stroke: #1f2328; stroke-width: 1.5 }
text.godwit, text.vmagent, text.prometheus, text.collector { stroke: none }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .soft { fill: #9198a1 } .grid { stroke: #3d444d } .range { stroke: #f0f6fc }
.godwit { fill: #4493f8; stroke: #4493f8 } .vmagent { fill: #ab7df8; stroke: #ab7df8 }
.prometheus { fill: #f0883e; stroke: #f0883e } .collector { fill: #d29922; stroke: #d29922 }
}
</style>
`

const (
	width   = 860
	labels  = 270 // space to the left of the bars
	barStep = 24
	bar     = 15
)

// canvas collects an image, whose height is known only at the end.
type canvas struct {
	strings.Builder
}

func (c *canvas) text(x, y float64, class, anchor, text string) {
	fmt.Fprintf(c, "<text x=%q y=%q class=%q text-anchor=%q>%s</text>\n", f1(x), f1(y), class, anchor, html.EscapeString(text))
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(c, "<line x1=%q y1=%q x2=%q y2=%q class=%q/>\n", f1(x1), f1(y1), f1(x2), f1(y2), class)
}

func f1(v float64) string { return fmt.Sprintf("%.1f", v) }

// SVG renders the result's chart.
func (r *Result) SVG() string {
	var c canvas
	draw := r.bars
	if r.Axis != "" {
		draw = r.curves
	}
	height := draw(&c)
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-8 0 %d %.0f\" role=\"img\">\n<title>%s</title>\n%s%s</svg>\n",
		width+16, height, html.EscapeString(r.Title), style, c.String())
}

// bars draws a panel per figure with a bar per agent, and returns the height.
func (r *Result) bars(c *canvas) float64 {
	rows := slices.DeleteFunc(byCost(r.Rows), func(w Row) bool { return len(w.Runs) == 0 })
	y := 24.0
	c.text(0, y, "title", "start", r.Title)
	for _, f := range []figure{cpuFigure, rssFigure, wireFigure} {
		y += 34
		c.text(0, y, "title", "start", f.title)
		c.text(labels, y, "soft", "start", f.unit+"; less is better")
		y += 10
		most := 0.0
		for i := range rows {
			most = max(most, rows[i].Of(f.of).Max)
		}
		for i := range rows {
			w := &rows[i]
			s := w.Of(f.of)
			length := func(v float64) float64 { return v / max(most, math.SmallestNonzeroFloat64) * (width - labels - 70) }
			c.text(labels-10, y+12, "", "end", w.Title)
			fmt.Fprintf(c, "<rect x=\"%d\" y=%q width=%q height=\"%d\" rx=\"2\" class=%q/>\n", labels, f1(y), f1(max(1, length(s.Median))), bar, w.Party)
			if s.Max > s.Min {
				c.line(labels+length(s.Min), y+bar/2.0, labels+length(s.Max), y+bar/2.0, "range")
			}
			c.text(labels+length(s.Max)+8, y+12, "", "start", number(s.Median))
			y += barStep
		}
	}
	return y + 8
}

const (
	plotLeft   = 52
	plotWidth  = 490
	plotHeight = 210
)

// curves draws a panel per figure with a line per agent over the axis, and returns the height.
func (r *Result) curves(c *canvas) float64 {
	var points []float64
	agents := map[string][]Row{}
	var order []string
	for _, w := range r.Rows {
		if len(w.Runs) == 0 {
			continue
		}
		if !slices.Contains(points, w.At) {
			points = append(points, w.At)
		}
		if agents[w.Agent] == nil {
			order = append(order, w.Agent)
		}
		agents[w.Agent] = append(agents[w.Agent], w)
	}
	slices.Sort(points)
	// Points have equal distances, because the axis grows by factors.
	x := func(at float64) float64 {
		return plotLeft + 20 + float64(slices.Index(points, at))*(plotWidth-40)/float64(max(1, len(points)-1))
	}
	top := 24.0
	c.text(0, top, "title", "start", r.Title)
	for _, f := range []figure{cpuFigure, rssFigure, wireFigure} {
		top += 40
		c.text(0, top, "title", "start", f.title)
		c.text(plotLeft+60, top, "soft", "start", f.unit)
		top += 14
		most := 0.0
		for _, rows := range agents {
			for i := range rows {
				most = max(most, rows[i].Of(f.of).Median)
			}
		}
		step := niceStep(most)
		ceiling := math.Ceil(most/step) * step
		y := func(v float64) float64 { return top + plotHeight*(1-v/ceiling) }
		for v := 0.0; v <= ceiling+step/2; v += step {
			c.line(plotLeft, y(v), plotLeft+plotWidth, y(v), "grid")
			c.text(plotLeft-8, y(v)+4, "soft", "end", number(v))
		}
		for _, p := range points {
			c.text(x(p), top+plotHeight+18, "soft", "middle", axisValue(r.Axis, p))
		}
		r.curveLines(c, order, agents, f, x, y)
		top += plotHeight + 18
	}
	c.text(plotLeft+plotWidth/2, top+20, "soft", "middle", r.Axis)
	return top + 32
}

func (r *Result) curveLines(c *canvas, order []string, agents map[string][]Row, f figure, x, y func(float64) float64) {
	type end struct {
		y     float64
		title string
		party string
	}
	var ends []end
	met := map[string]bool{}
	for _, agent := range order {
		rows := agents[agent]
		var path strings.Builder
		for i := range rows {
			v := rows[i].Of(f.of).Median
			fmt.Fprintf(&path, "%s,%s ", f1(x(rows[i].At)), f1(y(v)))
			fmt.Fprintf(c, "<circle cx=%q cy=%q r=\"3.5\" class=%q/>\n", f1(x(rows[i].At)), f1(y(v)), rows[i].Party)
		}
		last := rows[len(rows)-1]
		dashes := ""
		if met[last.Party] { // the party's second line has its colour but is dashed
			dashes = " second"
		}
		met[last.Party] = true
		fmt.Fprintf(c, "<polyline points=%q class=\"line %s%s\" style=\"fill:none\"/>\n", strings.TrimSpace(path.String()), last.Party, dashes)
		ends = append(ends, end{y(last.Of(f.of).Median), last.Title + "  " + number(last.Of(f.of).Median), last.Party})
	}
	// Labels at the ends of lines, moved apart.
	slices.SortFunc(ends, func(a, b end) int { return int(math.Copysign(1, a.y-b.y)) })
	at := math.Inf(-1)
	for _, e := range ends {
		at = max(at+16, e.y+4)
		c.text(plotLeft+plotWidth+8, at, e.party, "start", e.title)
	}
}

// niceStep returns a round distance for about four grid lines.
func niceStep(most float64) float64 {
	if most <= 0 {
		return 1
	}
	raw := most / 4
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if raw <= m*unit {
			return m * unit
		}
	}
	return 10 * unit
}
