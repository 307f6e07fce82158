// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package farm serves many scrape targets from one process, so cheaply that it does not disturb the agents.
//
// The pages of each target are rendered and compressed before the first scrape, in a few steps each, and served in
// turn. Only a short tail is made for each scrape: short-lived series and the number of the scrape. Targets never share
// a page: identical values would favour agents that compress across targets.
package farm

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// Format is an exposition format.
type Format int

// The formats of a page.
const (
	Text Format = iota
	OpenMetrics
	// anyFormat marks comments of all formats.
	anyFormat
)

// line is one line of a page: a comment or a sample.
type line struct {
	// series is the sample's name and labels, or the whole comment.
	series string
	kind   kind
	// only restricts a comment to one format.
	only Format
	// value is the initial value of a plain sample. For a part of a distribution, it is the share of its observations,
	// or their mean.
	value float64
	// exemplar is the value of the line's exemplar; zero means none.
	exemplar float64
	// group is the number of the distribution that the line belongs to; zero means none.
	group int
	// changes is set if the value changes from step to step.
	changes bool
	// varies is set if the labels differ between targets: see expand.
	varies bool
	// dropped is set if Rules drop the sample.
	dropped bool
}

type kind uint8

const (
	plain   kind = iota
	comment      // not a sample
	created      // `_created`, which only OpenMetrics has
	counted      // part of a distribution: a cumulative count
	summed       // part of a distribution: the sum of its observations
)

func (l *line) isSample() bool { return l.kind != comment && l.kind != created }

// Page is the model from which each target's pages are rendered.
type Page struct {
	lines  []line
	groups int
	// openMetrics is set if the page is also offered in OpenMetrics.
	openMetrics bool
	// live is set if the page is rendered for each scrape, because its series come and go.
	live bool
}

// Samples returns the number of samples without `_created` lines.
func (p *Page) Samples() int {
	n := 0
	for i := range p.lines {
		if p.lines[i].isSample() {
			n++
		}
	}
	return n
}

func (p *Page) comment(only Format, format string, args ...any) {
	p.lines = append(p.lines, line{series: fmt.Sprintf(format, args...), kind: comment, only: only})
}

func (p *Page) sample(series string, value float64) {
	p.lines = append(p.lines, line{series: series, value: value})
}

// family opens a family. OpenMetrics omits the suffix of counters.
func (p *Page) family(name, kind, help string) {
	p.comment(Text, "# HELP %s %s", name, help)
	p.comment(Text, "# TYPE %s %s", name, kind)
	if kind == "counter" {
		name = strings.TrimSuffix(name, "_total")
	}
	p.comment(OpenMetrics, "# HELP %s %s", name, help)
	p.comment(OpenMetrics, "# TYPE %s %s", name, kind)
}

// ReadPage reads a captured page in text format 0.0.4.
func ReadPage(file string) (*Page, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read page: %w", err)
	}
	p := &Page{}
	distribution := false
	for text := range strings.Lines(string(body)) {
		text = strings.TrimSuffix(text, "\n")
		if strings.HasPrefix(text, "#") {
			if strings.HasPrefix(text, "# TYPE ") {
				distribution = strings.HasSuffix(text, " summary") || strings.HasSuffix(text, " histogram")
				p.groups++
			}
			p.comment(anyFormat, "%s", text)
			continue
		}
		cut := strings.LastIndexByte(text, ' ')
		if cut < 0 {
			return nil, fmt.Errorf("cannot read page %s: no value in line %q", file, text)
		}
		value, err := strconv.ParseFloat(text[cut+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("cannot read page %s: %w", file, err)
		}
		l := line{series: text[:cut], value: value}
		if distribution {
			l.group = p.groups
		}
		p.lines = append(p.lines, l)
	}
	return p, nil
}

// choose marks the share of samples whose values change from step to step; distributions change as a whole. Flags and
// zeroes are chosen last, because they rarely change.
func (p *Page) choose(share float64) {
	var active, idle []int
	for i := range p.lines {
		l := &p.lines[i]
		switch {
		case !l.isSample():
		case l.group > 0:
			l.changes = unit(hash(0, 0, l.group)) < share
		case l.value == 0 || l.value == 1:
			idle = append(idle, i)
		default:
			active = append(active, i)
		}
	}
	want := int(math.Round(share * float64(len(active)+len(idle))))
	for _, group := range [][]int{active, idle} {
		n := min(want, len(group))
		want -= n
		for j := range n { // evenly over the group
			p.lines[group[j*len(group)/n]].changes = true
		}
	}
}

// churn removes the share of samples that short-lived series replace, evenly over the page, and returns their number.
// Distributions stay complete.
func (p *Page) churn(share float64) int {
	candidates := 0
	for i := range p.lines {
		if l := &p.lines[i]; l.isSample() && l.group == 0 {
			candidates++
		}
	}
	gone := min(int(math.Round(share*float64(p.Samples()))), candidates)
	kept, seen := p.lines[:0], 0
	for _, l := range p.lines {
		if l.isSample() && l.group == 0 {
			seen++
			if seen*gone/candidates > (seen-1)*gone/candidates {
				continue
			}
		}
		kept = append(kept, l)
	}
	p.lines = kept
	return gone
}
