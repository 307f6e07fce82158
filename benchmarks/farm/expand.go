// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package farm

import (
	"fmt"
	"strings"
)

// What stands in a series for text that differs from target to target: one of these bytes, and one that tells places of the
// kind apart.
const (
	ofTarget = '\x01' // the same in every scrape
	ofPod    = '\x02' // of a pod, until another takes its place
)

// podLife is in how many scrapes a pod is seen: one in fifty is another in the next.
const podLife = 50

// generation tells which pod a target has in a place.
func generation(target, place, scrape int) int {
	return (scrape + int(hash(7, target, place)%podLife)) / podLife
}

// expand appends a series as a target shows it in a scrape.
func expand(dst []byte, series string, target, scrape int) []byte {
	for {
		at := strings.IndexAny(series, "\x01\x02")
		if at < 0 {
			return append(dst, series...)
		}
		dst = append(dst, series[:at]...)
		kind, place := series[at], int(series[at+1])
		h := hash(5, target, place)
		if kind == ofPod {
			h = hash(6, target, place, generation(target, place>>podBits, scrape))
		}
		dst = fmt.Appendf(dst, "%08x", uint32(h>>32))
		series = series[at+2:]
	}
}

// podBits is how many of a place's bits tell texts of one pod apart.
const podBits = 2

// text stands for one of the four texts that are a pod's own.
func (p podPlace) text(which int) string { return string([]byte{ofPod, byte(int(p)<<podBits | which)}) }

// podPlace is a place for a pod on a node. Zero is none: a place's byte must not end a line.
type podPlace int

// own gives each series a label that is the target's own, as the pod is of what runs in one.
func (p *Page) own() {
	label := "pod=\"app-" + string([]byte{ofTarget, 'p'}) + "\""
	for i := range p.lines {
		l := &p.lines[i]
		if l.kind == comment {
			continue
		}
		l.varies = true
		if name, rest, found := strings.Cut(l.series, "{"); found {
			l.series = name + "{" + label + "," + rest
		} else {
			l.series += "{" + label + "}"
		}
	}
}
