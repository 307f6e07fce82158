// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
)

// nodePages returns pages of node exporters with the host in the first or the last label. Each host has this many
// parts, to which the lines belong in turn, so that no value is on many lines.
func nodePages(isFirst bool, parts int) (pages [][]byte) {
	for i := range 250 {
		var b strings.Builder
		n := 0
		for line := range strings.Lines(nodePage(1)) {
			n++
			host := fmt.Sprintf("host=\"node-%d.%d.example.org\"", i, n%parts)
			series, value, _ := strings.Cut(line, " ")
			name, ls, isLabeled := strings.Cut(strings.TrimSuffix(series, "}"), "{")
			switch {
			case line[0] == '#':
				b.WriteString(line)
				continue
			case !isLabeled:
				ls = host
			case isFirst:
				ls = host + "," + ls
			default:
				ls += "," + host
			}
			fmt.Fprintf(&b, "%s{%s} %s", name, ls, value)
		}
		pages = append(pages, []byte(b.String()))
	}
	return pages
}

// meshPages returns pages of proxies whose histograms have more labels than a line can share: each bucket repeats all
// of them.
func meshPages() (pages [][]byte) {
	for i := range 20 {
		var b strings.Builder
		b.WriteString("# TYPE istio_request_bytes histogram\n")
		for k := range 260 {
			var ls strings.Builder
			for _, end := range []string{"source", "destination"} {
				for _, what := range []string{"workload", "workload_namespace", "principal", "app", "version", "cluster", "canonical_service"} {
					fmt.Fprintf(&ls, "%s_%s=\"%s-of-%d-%d\",", end, what, what, i, k)
				}
			}
			for n := range 20 {
				fmt.Fprintf(&b, "istio_request_bytes_bucket{%sle=\"%d\"} %d\n", &ls, 1<<n, n)
			}
			fmt.Fprintf(&b, "istio_request_bytes_bucket{%sle=\"+Inf\"} 20\nistio_request_bytes_sum{%s} 7\nistio_request_bytes_count{%s} 20\n", &ls, ls.String()[:ls.Len()-1], ls.String()[:ls.Len()-1])
		}
		pages = append(pages, []byte(b.String()))
	}
	return pages
}

// sidecarPages returns pages of proxies that name their pod, node and instance on each line, and otherwise have the
// same clusters.
func sidecarPages() (pages [][]byte) {
	for i := range 20 {
		own := fmt.Sprintf("pod=\"sidecar-%d\",node=\"node-%d.example.org\",instance_id=\"%08x\"", i, i, 12345*i)
		var b strings.Builder
		b.WriteString("# TYPE envoy_cluster_upstream_rq counter\n")
		for k := range 2000 {
			fmt.Fprintf(&b, "envoy_cluster_upstream_rq{cluster_name=\"outbound|%d\",%s} 1\n", k, own)
		}
		b.WriteString("# TYPE istio_request_bytes histogram\n")
		for k := range 200 {
			var ls strings.Builder
			for _, end := range []string{"source", "destination"} {
				for _, what := range []string{"workload", "workload_namespace", "principal", "app", "version", "cluster", "canonical_service"} {
					fmt.Fprintf(&ls, "%s_%s=\"%s-of-%d-%d\",", end, what, what, i, k)
				}
				if end == "source" {
					ls.WriteString(own + ",")
				}
			}
			for n := range 17 {
				fmt.Fprintf(&b, "istio_request_bytes_bucket{%sle=\"%d\"} %d\n", &ls, 1<<n, n)
			}
			fmt.Fprintf(&b, "istio_request_bytes_bucket{%sle=\"+Inf\"} 17\nistio_request_bytes_sum{%s} 7\nistio_request_bytes_count{%s} 17\n", &ls, ls.String()[:ls.Len()-1], ls.String()[:ls.Len()-1])
		}
		pages = append(pages, []byte(b.String()))
	}
	return pages
}

// textOf returns the number of series on these pages and the length of their text.
func textOf(pages [][]byte) (series, length int) {
	for _, page := range pages {
		for line := range strings.Lines(string(page)) {
			if line[0] != '#' {
				series++
				length += strings.LastIndexByte(line, ' ')
			}
		}
	}
	return series, length
}

// aboutTarget is the memory of a target besides that of its pages.
const aboutTarget = 1000

// A series of a new shape takes its text and 120 B, on large pages like those of exporters. Lines that have little in
// common with others take up to twice that.
func TestMemoryOfNewSeries(t *testing.T) {
	racetest.Sequential(t)
	for _, k := range []struct {
		name  string
		most  float64
		pages [][]byte
	}{
		{"a page about pods", 120, [][]byte{[]byte(kubeText(100_000))}},
		{"a larger one", 120, [][]byte{[]byte(kubeText(170_000))}},
		{"nodes in parts, by the first label", -45, nodePages(true, 20)}, // they share the lines of others, and have few texts of their own
		{"nodes in parts, by the last label", -45, nodePages(false, 20)},
		{"nodes, each line of a part of its own", 170, nodePages(false, 400)},
		{"histograms with many labels", -460, meshPages()}, // each text is stored once
		{"histograms with many labels, some of the target alone", -350, sidecarPages()},
		{"one metric", 155, [][]byte{[]byte(bigText(100_000))}},
	} {
		t.Run(k.name, func(t *testing.T) {
			series, text := textOf(k.pages)
			require.GreaterOrEqual(t, series, 100_000)
			j := newTestJob(t, Config{Scrape: testScrapeConfig()})
			before := heap()
			var targets []*Target
			for i := range k.pages {
				targets = append(targets, testTarget(j, i))
			}
			for range 2 {
				for i, page := range k.pages {
					r := showBytes(targets[i], start, typeText, page)
					require.NoError(t, r.Err)
					for r.Pending() > 0 {
						r = r.Next()
					}
					r.Release()
				}
			}
			held := heap() - before
			kept := float64(held-int64(text)) / float64(series)
			t.Logf("%.0f B a series besides %.0f B of text", kept, float64(text)/float64(series))
			require.LessOrEqual(t, kept, k.most)
			require.InDelta(t, held, j.Stats().Bytes+aboutTarget*int64(len(targets)), 0.2*float64(held), "it knows about how much it holds")
			runtime.KeepAlive(targets)
			runtime.KeepAlive(k.pages)
		})
	}
}

// Series that are seen only once leave their text and little more than what was kept of them.
func TestGarbageOfSeriesThatAreSeenOnce(t *testing.T) {
	racetest.Sequential(t)
	t.Cleanup(handback.Poison(false)) // it loses what is kept
	const targets, series, rounds = 20, 250, 20
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
	of := make([]*Target, targets)
	for i := range of {
		of[i] = testTarget(j, i)
	}
	var known strings.Builder
	for i := range series {
		fmt.Fprintf(&known, "known{id=\"%d\"} 1\n", i)
	}
	garbage, text := uint64(0), 0
	for round := range 2 * rounds {
		var pages [][]byte
		for i := range of {
			page := []byte(known.String())
			for k := range series {
				page = fmt.Appendf(page, "m{namespace=\"team-%d\",pod=\"api-%08x-%05x\",generation=\"%d\"} 1\n", k%10, i*series+k, round, round)
			}
			pages = append(pages, page)
		}
		var was, is runtime.MemStats
		runtime.ReadMemStats(&was)
		for i, target := range of {
			r := showBytes(target, start, typeText, pages[i])
			require.NoError(t, r.Err)
			r.Release()
		}
		runtime.ReadMemStats(&is)
		if round >= rounds {
			garbage += is.TotalAlloc - was.TotalAlloc
			text += targets * (len(pages[0]) - known.Len())
		}
	}
	const seen = rounds * targets * series
	t.Logf("garbage %.0f B a series besides %d B of text", float64(garbage)/seen-float64(text/seen), text/seen)
	require.LessOrEqual(t, float64(garbage)/seen-float64(text/seen), 185.0)
}

// Labels that identify the target on every line take almost no memory: all targets share the lines.
func TestMemoryOfLinesThatTellOfTheirTarget(t *testing.T) {
	racetest.Sequential(t)
	pages := nodePages(false, 1)
	series, _ := textOf(pages)
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	before := heap()
	var targets []*Target
	for i := range pages {
		targets = append(targets, testTarget(j, i))
	}
	for range 2 {
		for i, page := range pages {
			r := showBytes(targets[i], start, typeText, page)
			require.NoError(t, r.Err)
			r.Release()
		}
	}
	require.Equal(t, 1, j.Stats().Plans)
	require.Less(t, float64(heap()-before)/float64(series), 20.0, "with the texts")
	runtime.KeepAlive(targets)
	runtime.KeepAlive(pages)
}

// Nor do labels that rules derive from the target's labels: lines and plans are shared, and a target adds only its few
// own values.
func TestMemoryOfRelabelledSeries(t *testing.T) {
	racetest.Sequential(t)
	const targets = 250
	page := []byte(nodePage(1))
	series, _ := textOf([][]byte{page})
	j := newTestJob(t, Config{Scrape: scrapeConfig(t, `  metric_relabel_configs:
  - {source_labels: [__name__], regex: "node_cpu3.*", action: drop}
  - {source_labels: [__name__, device], regex: "node_(network|disk)_.+;(lo|docker.*|veth1)", action: drop}
  - {source_labels: [instance], regex: "([^:]+):.*", target_label: node}
  - {regex: operstate, action: labeldrop}
`)})
	before := heap()
	var all []*Target
	for i := range targets {
		all = append(all, testTarget(j, i))
		for range 2 {
			r := showBytes(all[i], start, typeText, page)
			require.NoError(t, r.Err)
			require.Less(t, r.PostRelabel, r.Samples)
			r.Release()
		}
	}
	require.Equal(t, 1, j.Stats().Plans)
	kept := float64(heap()-before) / float64(targets*series)
	t.Logf("%.1f B a series, text and targets included", kept)
	require.Less(t, kept, 10.0)
	runtime.KeepAlive(all)
}
