// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package tally is shared by the farm and the sink, so that each served sample can be accounted for although neither
// knows the other's pages: a count and a checksum of sample values in any order, and the addresses of targets.
package tally

import (
	"bytes"
	"fmt"
	"math"
)

// ScrapeID is the series on each page with the number of the scrape.
const ScrapeID = "farm_scrape"

// IsCreated reports whether a series is a `_created` of a counter or a histogram. Some agents turn these into start
// timestamps and others do not request them, so they cannot count as samples. Gauges may have the same suffix, such as
// kube_pod_created.
func IsCreated(name []byte) bool {
	return bytes.HasPrefix(name, []byte("http_server_")) && bytes.HasSuffix(name, []byte("_created"))
}

// Tally is the number of samples in one scrape and the sum of their Marks.
type Tally struct {
	Count uint64 `json:"count"`
	Sum   uint64 `json:"sum"`
}

// Add adds one sample.
func (t *Tally) Add(value float64) {
	t.Count++
	t.Sum += Mark(value)
}

// Merge adds all samples of o.
func (t *Tally) Merge(o Tally) {
	t.Count += o.Count
	t.Sum += o.Sum
}

// Mark maps a value to well-spread bits, so that a sum of marks depends on which values occurred and how often. It
// rounds away the last 20 bits of the mantissa, because parsers may differ by one unit in the last place.
func Mark(value float64) uint64 {
	const dropped = 20
	x := (math.Float64bits(value) + 1<<(dropped-1)) >> dropped
	// The finaliser of splitmix64.
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// MaxTargets is the number of targets that Address can distinguish.
const MaxTargets = 1 << 16

// Address returns the loopback address of target i.
func Address(i, port int) string {
	return fmt.Sprintf("127.1.%d.%d:%d", i>>8, i&0xff, port)
}

// Target is the inverse of Address: it returns the target of an instance label, or -1.
func Target(instance []byte) int {
	rest, ok := bytes.CutPrefix(instance, []byte("127.1."))
	if !ok {
		return -1
	}
	var octets [2]int
	for i, end := range [2]byte{'.', ':'} {
		at := bytes.IndexByte(rest, end)
		if at < 1 || at > 3 {
			return -1
		}
		for _, c := range rest[:at] {
			if c < '0' || c > '9' {
				return -1
			}
			octets[i] = octets[i]*10 + int(c-'0')
		}
		if octets[i] > 255 {
			return -1
		}
		rest = rest[at+1:]
	}
	return octets[0]<<8 | octets[1]
}
