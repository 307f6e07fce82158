// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkPods scrapes targets in turn whose pods are on no other target. Some pods are replaced from scrape to
// scrape.
func BenchmarkPods(b *testing.B) {
	const nodes, pods, scrapes = 64, 14, 8
	for _, replaced := range []int{0, 50} { // one in so many
		b.Run(fmt.Sprintf("replaced=%d", replaced), func(b *testing.B) {
			j := newTestJob(b, Config{Scrape: testScrapeConfig(), Reuse: true})
			var targets []*Target
			pages := make([][][]byte, nodes)
			samples := 0
			for i := range nodes {
				targets = append(targets, testTarget(j, i))
				k := newKubelet(uint64(i), pods)
				for range scrapes {
					for at := range k.pods {
						if replaced > 0 && k.IntN(replaced) == 0 {
							k.pods[at] = k.pod()
						}
					}
					page := k.page()
					samples = strings.Count(page, "\n") - strings.Count(page, "# ")
					pages[i] = append(pages[i], []byte(page))
				}
			}
			n := 0
			scrape := func() {
				r := showBytes(targets[n%nodes], start.Add(time.Duration(n)*time.Second), typeText, pages[n%nodes][n/nodes%scrapes])
				if r.Err != nil {
					b.Fatal(r.Err)
				}
				r.Release()
				n++
			}
			for range scrapes * nodes {
				scrape()
			}
			b.ReportAllocs()
			for b.Loop() {
				scrape()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(samples), "ns/sample")
			b.ReportMetric(float64(j.Stats().Lines), "lines")
		})
	}
}
