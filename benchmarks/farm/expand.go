// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package farm

import (
	"fmt"
	"strings"
)

// Two bytes in a series stand for text that differs between targets: one of these, and one that distinguishes places.
const (
	ofTarget = '\x01' // the same in every scrape
	ofPod    = '\x02' // of a pod, until another pod replaces it
)

// podLife is the number of scrapes in which a pod exists: one in fifty pods is replaced from scrape to scrape.
const podLife = 50

// generation returns which pod is in a place of a target.
func generation(target, place, scrape int) int {
	return (scrape + int(hash(7, target, place)%podLife)) / podLife
}

// expand appends a series as it is on a target in a scrape.
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

// podBits is the number of bits that distinguish the texts of one pod.
const podBits = 2

// text stands for one of the four texts of a pod.
func (p podPlace) text(which int) string { return string([]byte{ofPod, byte(int(p)<<podBits | which)}) }

// podPlace is a place for a pod on a node. Zero means none: the byte of a place must not be a line feed.
type podPlace int

// own gives each series a label with a value of the target's own, as the label pod is.
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
