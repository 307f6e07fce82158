// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A crowd is the pages of targets of one shape, in which new lines replace some of the lines from scrape to scrape.
type crowd struct {
	*rand.Rand

	share float64
	where string
	pages [][]string // lines by target
	made  int
}

const (
	atEnd     = "end"       // the last lines live for one scrape
	inPlace   = "scattered" // lines all over the page live for one scrape, always in the same places
	driftAway = "drift"     // new lines stay until a random replacement
	shuffled  = "shuffled"  // no line is new, but families and their lines change their order
)

func newCrowd(targets int, lines []string, share float64, where string) *crowd {
	c := &crowd{Rand: rand.New(rand.NewPCG(1, 1)), share: share, where: where}
	for range targets {
		c.pages = append(c.pages, slices.Clone(lines))
	}
	return c
}

// exporterLines returns this many samples in families of ten, with metadata.
func exporterLines(samples, perFamily int) (lines []string) {
	for i := range samples {
		f := i / perFamily
		if i%perFamily == 0 {
			lines = append(lines, fmt.Sprintf("# HELP node_family_%d Some help about it from the kernel.", f), fmt.Sprintf("# TYPE node_family_%d gauge", f))
		}
		lines = append(lines, fmt.Sprintf("node_family_%d{namespace=\"ns\",pod=\"pod-%d-abcdef\",container=\"c\"} %d", f, i, i))
	}
	return lines
}

// next returns the next page of a target.
func (c *crowd) next(target int, dst []byte) []byte {
	lines := c.pages[target]
	n := int(c.share * float64(len(lines)))
	if c.where == shuffled {
		lines = shuffle(c.Rand, lines)
		n = 0
	}
	for i := range n {
		at := len(lines) - 1 - i
		switch c.where {
		case inPlace:
			at = (i*len(lines) + len(lines)/2) / n
		case driftAway:
			at = c.IntN(len(lines))
		}
		if lines[at][0] == '#' {
			at++
			if lines[at][0] == '#' {
				at++
			}
		}
		c.made++
		name, _, _ := cutName(lines[at])
		lines[at] = fmt.Sprintf("%s{namespace=\"ns\",pod=\"api-%d-abcde\",container=\"c\"} %d", name, c.made, i)
	}
	for _, l := range lines {
		dst = append(append(dst, l...), '\n')
	}
	return dst
}

func cutName(line string) (name, rest string, found bool) {
	i := slices.Index([]byte(line), '{')
	return line[:i], line[i:], true
}

// shuffle changes the order of families and of the lines in each.
func shuffle(r *rand.Rand, lines []string) []string {
	var families [][]string
	for i, l := range lines {
		if l[0] == '#' && (i == 0 || lines[i-1][0] != '#') {
			families = append(families, nil)
		}
		families[len(families)-1] = append(families[len(families)-1], l)
	}
	r.Shuffle(len(families), func(i, j int) { families[i], families[j] = families[j], families[i] })
	for _, f := range families {
		samples := f[2:]
		r.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
	}
	return slices.Concat(families...)
}

func BenchmarkChurn(b *testing.B) {
	for _, k := range []struct {
		name                        string
		targets, samples, perFamily int
	}{{"farm", 1000, 500, 10}, {"large", 1, 20_000, 20_000}} {
		for _, reuse := range []bool{true, false} {
			for _, where := range []string{atEnd, inPlace, driftAway, shuffled} {
				for _, share := range []float64{0, 0.01, 0.1, 0.5} {
					if share == 0 && where != atEnd || where == shuffled && (share > 0 || k.targets > 1) {
						if where != shuffled || share > 0 {
							continue
						}
					}
					b.Run(fmt.Sprintf("page=%s/reuse=%v/where=%s/share=%v", k.name, reuse, where, share), func(b *testing.B) {
						benchmarkCrowd(b, newCrowd(k.targets, exporterLines(k.samples, k.perFamily), share, where), k.samples, reuse)
					})
				}
			}
		}
	}
}

func benchmarkCrowd(b *testing.B, c *crowd, samples int, reuse bool) {
	j := newTestJob(b, Config{Scrape: testScrapeConfig(), Reuse: reuse})
	var (
		targets []*Target
		page    []byte
	)
	for i := range c.pages {
		targets = append(targets, testTarget(j, i))
	}
	for range 3 {
		for i, t := range targets {
			page = c.next(i, page[:0])
			showBytes(t, start, typeText, page).Release()
		}
	}
	// Pages are made in batches, outside of the measured time.
	batch := min(len(targets), 50)
	pages := make([][]byte, batch)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%batch == 0 {
			b.StopTimer()
			for k := range pages {
				pages[k] = c.next((i+k)%len(targets), pages[k][:0])
			}
			b.StartTimer()
		}
		r := showBytes(targets[i%len(targets)], start, typeText, pages[i%batch])
		if r.Err != nil {
			b.Fatal(r.Err)
		}
		r.Release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(samples), "ns/sample")
	b.ReportMetric(0, "ns/op")
	for _, t := range targets {
		t.Retire(start)
	}
}
