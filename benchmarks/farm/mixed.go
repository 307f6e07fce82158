// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package farm

import (
	"fmt"
	"math"
	"strings"
)

// kinds is the number of different pages in a mixed fleet.
const kinds = 40

// Mixed generates the pages of a fleet of programs that have little in common: hosts, applications in Go and Java,
// OpenMetrics with exemplars, histograms of thirty buckets. Sizes range from 20 samples to `largest`, with as many
// small as large ones. Exemplars can be omitted, because some agents do not send them. There are no native histograms:
// two of the rivals do not support them, so their work would be less.
func Mixed(largest int, nodePage string, exemplars bool) ([]*Page, error) {
	pages := make([]*Page, kinds)
	for k := range pages {
		const smallest = 20
		size := float64(k*7%kinds) / (kinds - 1) // a program of each kind comes in all sizes
		samples := int(smallest * math.Pow(float64(largest)/smallest, size))
		switch k % 5 {
		case 0:
			node, err := ReadPage(nodePage)
			if err != nil {
				return nil, err
			}
			pages[k] = node.repeat(samples)
		case 1:
			pages[k] = goApp(k, samples)
		case 2:
			pages[k] = App(samples, 50)
		case 3:
			pages[k] = fineHistograms(k, samples)
		default:
			pages[k] = javaApp(k, samples)
		}
		if !exemplars {
			for i := range pages[k].lines {
				pages[k].lines[i].exemplar = 0
			}
		}
	}
	return pages, nil
}

// repeat returns a page of at least so many samples whose last family is complete: the first families of this page, or
// several copies of them for different zones.
func (p *Page) repeat(samples int) *Page {
	out := &Page{groups: p.groups}
	for zone := 0; out.Samples() < samples; zone++ {
		for _, l := range p.lines {
			if l.kind == comment && out.Samples() >= samples {
				break // after a complete family
			}
			if l.kind == comment && zone > 0 {
				continue // only once per family
			}
			if zone > 0 {
				l.group = 0
				if name, rest, found := strings.Cut(l.series, "{"); found {
					l.series = fmt.Sprintf("%s{zone=\"z%d\",%s", name, zone, rest)
				} else {
					l.series = fmt.Sprintf("%s{zone=\"z%d\"}", l.series, zone)
				}
			}
			out.lines = append(out.lines, l)
		}
	}
	return out
}

// fill calls family until the page has so many samples.
func (p *Page) fill(samples int, family func(n int)) *Page {
	for n := 0; p.Samples() < samples; n++ {
		family(n)
	}
	return p
}

// goApp is a Go program: metrics of the runtime, and counters of its own with few labels.
func goApp(kind, samples int) *Page {
	p := &Page{}
	for _, m := range []string{"goroutines", "threads", "memstats_alloc_bytes", "memstats_heap_idle_bytes", "memstats_heap_inuse_bytes", "memstats_next_gc_bytes"} {
		p.family("go_"+m, "gauge", "Of the runtime.")
		p.sample("go_"+m, 4096*float64(hash(0, 17, kind)%9_000+100))
	}
	return p.fill(samples, func(n int) {
		name := fmt.Sprintf("%s_%s_total", word(kind), word(n))
		p.family(name, "counter", "What happened so far.")
		for i := range 12 {
			p.sample(fmt.Sprintf(`%s{handler="/%s",code="%d"}`, name, word(n+i/3), 200+100*(i%3)), float64(hash(0, 18, kind, n, i)%7_000_000))
		}
	})
}

// javaApp is a Java program: long names of classes and pools on every series.
func javaApp(kind, samples int) *Page {
	p := &Page{}
	return p.fill(samples, func(n int) {
		name := fmt.Sprintf("jvm_%s_seconds", word(n+500))
		p.family(name, "summary", "Time spent, by class and pool.")
		for i := range 8 {
			p.groups++
			labels := fmt.Sprintf(`class="org.example.%s.internal.%sServiceImpl$$Proxy%d",pool="G1 Eden Space %d",application=%q`, word(kind), word(n), i, i%3, word(kind))
			for _, q := range []string{"0.5", "0.95", "0.99"} {
				p.lines = append(p.lines, line{series: fmt.Sprintf("%s{%s,quantile=%q}", name, labels, q), value: 0.137 * float64(i+1)})
			}
			p.lines = append(p.lines,
				line{series: name + "_sum{" + labels + "}", kind: summed, value: 0.137, group: p.groups},
				line{series: name + "_count{" + labels + "}", kind: counted, value: 1, group: p.groups})
		}
	})
}

// fineHistograms has histograms of thirty buckets.
func fineHistograms(kind, samples int) *Page {
	p := &Page{}
	return p.fill(samples, func(n int) {
		name := fmt.Sprintf("%s_%s_latency_seconds", word(kind), word(n))
		p.family(name, "histogram", "How long it took.")
		for i := range 4 {
			p.groups++
			labels := fmt.Sprintf(`route="/api/%s",method=%q`, word(n+i/2), []string{"GET", "PUT"}[i%2])
			for b := range 30 {
				le := "+Inf"
				if b < 29 {
					le = fmt.Sprintf("%.4f", 0.0005*math.Pow(1.5, float64(b))+0.00005)
				}
				share := float64(b+1) / 30
				p.lines = append(p.lines, line{series: fmt.Sprintf("%s_bucket{%s,le=%q}", name, labels, le), kind: counted, value: share * share, group: p.groups})
			}
			p.lines = append(p.lines,
				line{series: name + "_sum{" + labels + "}", kind: summed, value: 0.137, group: p.groups},
				line{series: name + "_count{" + labels + "}", kind: counted, value: 1, group: p.groups})
		}
	})
}
