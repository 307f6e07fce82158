// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package farm serves many scrape targets from one process, cheaply enough not
// to disturb what it feeds.
//
// Each target's pages are rendered and compressed before the first scrape, a
// few steps of each, and served in turn. Only a short tail is made per scrape:
// the series that churn, and the scrape's number. Targets never share a page:
// identical values would flatter whoever compresses across targets.
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

// The formats a page can be served in.
const (
	Text Format = iota
	OpenMetrics
	// anyFormat is of comments that all formats have.
	anyFormat
)

// line is one line of a page: a comment, or a sample.
type line struct {
	// series is the sample's name and labels, or the whole comment.
	series string
	kind   kind
	// only restricts a comment to a format.
	only Format
	// value is what a plain sample starts from; for a part of a distribution,
	// the share of its observations, or their mean.
	value float64
	// exemplar is the value of the line's exemplar; zero means none.
	exemplar float64
	// group numbers the distribution that the line is part of; zero means none.
	group int
	// changes tells that the value moves from step to step.
	changes bool
	// varies tells that the labels differ from target to target: see expand.
	varies bool
	// dropped tells that Rules drop the sample.
	dropped bool
}

type kind uint8

const (
	plain   kind = iota
	comment      // no sample
	created      // `_created`, which exists in OpenMetrics only
	counted      // part of a distribution: a cumulative count
	summed       // part of a distribution: the sum of its observations
)

func (l *line) isSample() bool { return l.kind != comment && l.kind != created }

// Page is the model that each target's pages are rendered from.
type Page struct {
	lines  []line
	groups int
	// openMetrics reports whether the page is offered in OpenMetrics.
	openMetrics bool
	// live tells that the page is made for each scrape: its series come and go.
	live bool
}

// Samples is the number of samples of the page, less `_created` lines.
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

// family opens a family. OpenMetrics names counters without their suffix.
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

// choose marks the share of samples whose value changes from step to step, a
// distribution as a whole. Flags and zeroes are chosen last: those rarely move.
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

// churn takes the share of samples that short-lived series replace out of the
// page, evenly, and returns their number. Distributions stay whole.
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
