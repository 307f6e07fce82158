// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"math"
)

// charted are the variants in the chart; each of the others is close to one of them.
var charted = []string{sequential, concurrent, "otlp", "otlp-10", streamed, "stream-10", overSocket}

const streamStyle = `<style>
rect.unary { fill: #59636e; stroke: #59636e } .then { stroke: #cf4a22; stroke-width: 3 }
@media (prefers-color-scheme: dark) { rect.unary { fill: #9198a1; stroke: #9198a1 } .then { stroke: #f0883e } }
</style>
`

// streamBar is one bar, with the value of the proposal of 2019, 0 if there is none.
type streamBar struct {
	title, class string
	value        Spread
	then         float64
}

// SVG renders the chart: throughput and CPU at each latency, as ratios to one unary request at a time.
func (s *Stream) SVG() string {
	var c canvas
	y := 24.0
	c.text(0, y, "title", "start", s.Title)
	y += 20
	c.text(0, y, "soft", "start", "Each bar is a ratio to unary requests one by one on the same work in the same run. The red mark is the same ratio in the proposal of 2019.")
	for _, p := range s.points() {
		if !p.Pipelined {
			y = c.streamPanel(y, fmt.Sprintf("Throughput, %d ms", p.RTT), fmt.Sprintf("%d spans a batch; more is better", p.Items), s.against(p, (*StreamRun).Rate))
		}
	}
	for _, p := range s.points() {
		if p.RTT == 0 {
			y = c.streamPanel(y, fmt.Sprintf("CPU, batches of %d", p.Items), "0 ms; less is better", s.against(p, (*StreamRun).CPUPerBatch))
		}
	}
	var far, near []streamBar
	for i := range s.Pipelines {
		p := &s.Pipelines[i]
		class := map[string]string{"otlp": "collector", "otlpstream": "godwit"}[p.Exporter]
		switch {
		case len(p.Runs) == 0:
		case p.Offered == 0:
			far = append(far, streamBar{title: fmt.Sprintf("%s, %d spans a request", p.Exporter, p.Items), class: class, value: spreadOf(p.Runs, (*StreamPipelineRun).Rate)})
		case p.Compression == "":
			near = append(near, streamBar{title: fmt.Sprintf("%s, %d spans a request", p.Exporter, p.Items), class: class, value: spreadOf(p.Runs, (*StreamPipelineRun).CPUPerItem)})
		}
	}
	y = c.streamPanel(y, "Two Collectors, 200 ms apart", "spans/s with default settings; more is better", far)
	y = c.streamPanel(y, "Two Collectors, CPU", "µs a span, of both; less is better", near)
	var wire []streamBar
	for i := range s.Wire {
		w := &s.Wire[i]
		v := w.PerPoint()
		wire = append(wire, streamBar{
			title: w.Exporter + ", " + batching(w.Batched), class: map[string]string{"otlp": "collector", "otlpstream": "godwit"}[w.Exporter],
			value: Spread{v, v, v},
		})
	}
	y = c.streamPanel(y, "Metrics on the wire", "B a data point; less is better", wire)
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-8 0 %d %.0f\" role=\"img\">\n<title>%s</title>\n%s%s%s</svg>\n",
		width+16, y+8, html.EscapeString(s.Title), style, streamStyle, c.String())
}

// against returns the charted variants at a point as ratios to one unary request at a time.
func (s *Stream) against(p StreamPoint, figure func(*StreamRun) float64) (bars []streamBar) {
	base := s.cell(sequential, p)
	for _, name := range charted {
		c := s.cell(name, p)
		if c == nil || base == nil {
			continue
		}
		bar := streamBar{title: c.Title, class: c.Party, value: ratios(c.Runs, base.Runs, figure)}
		if name == sequential || name == concurrent {
			bar.class = "unary"
		}
		if c.Then != nil && base.Then != nil {
			bar.then = figure(c.Then) / figure(base.Then)
		}
		bars = append(bars, bar)
	}
	return bars
}

// streamPanel draws bars with a title, and returns the y below them.
func (c *canvas) streamPanel(y float64, title, unit string, bars []streamBar) float64 {
	if len(bars) == 0 {
		return y
	}
	y += 34
	c.text(0, y, "title", "start", title)
	c.text(labels, y, "soft", "start", unit)
	y += 10
	most := math.SmallestNonzeroFloat64
	for _, b := range bars {
		most = max(most, b.value.Max, b.then)
	}
	length := func(v float64) float64 { return v / most * (width - labels - 70) }
	for _, b := range bars {
		c.text(labels-10, y+12, "", "end", b.title)
		fmt.Fprintf(c, "<rect x=\"%d\" y=%q width=%q height=\"%d\" rx=\"2\" class=%q/>\n", labels, f1(y), f1(max(1, length(b.value.Median))), bar, b.class)
		if b.value.Max > b.value.Min {
			c.line(labels+length(b.value.Min), y+bar/2.0, labels+length(b.value.Max), y+bar/2.0, "range")
		}
		if b.then > 0 {
			c.line(labels+length(b.then), y-2, labels+length(b.then), y+bar+2, "then")
		}
		c.text(labels+max(length(b.value.Max), length(b.then))+8, y+12, "", "start", number(b.value.Median))
		y += barStep
	}
	return y
}
