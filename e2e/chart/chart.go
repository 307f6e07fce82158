// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart draws measurements of a test over time as an SVG file, for people to look at.
package chart

import (
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/repository"
)

// Chart is a line chart.
type Chart struct {
	// Title stands above, XLabel below and YLabel at the side.
	Title, XLabel, YLabel string
	Lines                 []Line
	// Marks are drawn as vertical lines.
	Marks []Mark
}

// Line is a line of points, sorted by X; neither X nor Y is negative.
type Line struct {
	Name   string
	Points []Point
}

// Point is a point of a line.
type Point struct{ X, Y float64 }

// Mark is an event at X.
type Mark struct {
	X    float64
	Text string
}

// Sizes in pixels.
const (
	width, height            = 720, 320
	left, right, top, bottom = 70, 120, 56, 50
	fewestTicks              = 5
)

var colours = []string{"#1b7f3b", "#1f5fbf", "#b8561b", "#7a3fa0"}

// Save writes the chart to bin/tests of the repository, where results of tests are.
func (c Chart) Save(t testing.TB, name string) {
	t.Helper()
	dir := filepath.Join(repository.Root(t), "bin", "tests")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	path := filepath.Join(dir, name+".svg")
	require.NoError(t, os.WriteFile(path, []byte(c.SVG()), 0o600))
	t.Logf("drawn: bin/tests/%s.svg", name)
}

// SVG returns the chart as SVG.
func (c Chart) SVG() string {
	x, y := c.scales()
	var b strings.Builder
	draw := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	text := func(atX, atY float64, anchor, s string) {
		var escaped strings.Builder
		_ = xml.EscapeText(&escaped, []byte(s)) // a strings.Builder accepts everything
		draw(`<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, atX, atY, anchor, escaped.String())
	}
	draw(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`, width, height)
	draw(`<rect width="100%%" height="100%%" fill="white"/>`)
	text(left, 20, "start", c.Title)
	text(width/2, height-12, "middle", c.XLabel)
	text(left-6, top-14, "end", c.YLabel)
	for _, v := range y.ticks() {
		draw(`<path d="M%d %.1fH%d" stroke="#ddd"/>`, left, y.at(v), width-right)
		text(left-6, y.at(v)+4, "end", fmt.Sprintf("%.4g", v))
	}
	for _, v := range x.ticks() {
		draw(`<path d="M%.1f %dv5" stroke="#999"/>`, x.at(v), height-bottom)
		text(x.at(v), height-bottom+18, "middle", fmt.Sprintf("%.4g", v))
	}
	for _, m := range c.Marks {
		draw(`<path d="M%.1f %dV%d" stroke="#999" stroke-dasharray="4 3"/>`, x.at(m.X), top, height-bottom)
		text(x.at(m.X)+4, top+12, "start", m.Text)
	}
	for i, line := range c.Lines {
		colour := colours[i%len(colours)]
		var points []string
		for _, p := range line.Points {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x.at(p.X), y.at(p.Y)))
		}
		draw(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.Join(points, " "), colour)
		row := float64(top + 16*(i+1))
		draw(`<path d="M%d %.1fh18" stroke="%s" stroke-width="2"/>`, width-right+8, row-4, colour)
		text(float64(width-right+30), row, "start", line.Name)
	}
	draw(`</svg>`)
	return b.String()
}

// scale maps values from 0 to high to pixels.
type scale struct{ high, from, to float64 }

func (s scale) at(v float64) float64 { return s.from + v/s.high*(s.to-s.from) }

// ticks returns round numbers.
func (s scale) ticks() (at []float64) {
	step := round(s.high / fewestTicks)
	for i := 0.0; i*step <= s.high; i++ {
		at = append(at, i*step)
	}
	return at
}

// scales returns scales on which all points fit.
func (c Chart) scales() (x, y scale) {
	x, y = scale{0, left, width - right}, scale{0, height - bottom, top}
	for _, line := range c.Lines {
		for _, p := range line.Points {
			x.high, y.high = max(x.high, p.X), max(y.high, p.Y)
		}
	}
	if x.high <= 0 {
		x.high = 1
	}
	if y.high <= 0 {
		y.high = 1
	}
	return x, y
}

// round returns the largest round number that is not larger.
func round(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{5, 2, 1} {
		if n*unit <= v {
			return n * unit
		}
	}
	return unit
}
