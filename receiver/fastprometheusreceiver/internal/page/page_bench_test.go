// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/alloctest"
	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
)

// nodePage resembles a node exporter's page: 507 samples in 230 families.
func nodePage(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 3))
	var b strings.Builder
	n := 0
	family := func(name, typ string, rows ...string) {
		fmt.Fprintf(&b, "# HELP %s Some help about %s from the kernel.\n# TYPE %s %s\n", name, name, name, typ)
		for _, row := range rows {
			switch r.IntN(3) {
			case 0:
				fmt.Fprintf(&b, "%s%s %d\n", name, row, r.IntN(1e9))
			case 1:
				fmt.Fprintf(&b, "%s%s %g\n", name, row, float64(r.IntN(1e9))/100)
			default:
				fmt.Fprintf(&b, "%s%s %v\n", name, row, 1e6*float64(1+r.IntN(1e6)))
			}
			n++
		}
	}
	for i := range 8 {
		rows := []string{}
		for _, m := range []string{"idle", "iowait", "irq", "nice", "softirq", "steal", "system", "user"} {
			rows = append(rows, fmt.Sprintf(`{cpu="%d",mode="%s"}`, i, m))
		}
		family(fmt.Sprintf("node_cpu%d_seconds_total", i), "counter", rows...)
	}
	for i := range 20 {
		rows := []string{}
		for _, d := range []string{"sda", "sdb", "dm-0", "dm-1", "nvme0n1"} {
			rows = append(rows, fmt.Sprintf(`{device="%s"}`, d))
		}
		family(fmt.Sprintf("node_disk_metric_%d_total", i), "counter", rows...)
	}
	for i := range 25 {
		rows := []string{}
		for _, d := range []string{"eth0", "lo", "docker0", "veth0", "veth1"} {
			rows = append(rows, fmt.Sprintf(`{device="%s",operstate="up"}`, d))
		}
		family(fmt.Sprintf("node_network_metric_%d", i), "gauge", rows...)
	}
	for i := 0; n < 507; i++ {
		family(fmt.Sprintf("node_memory_Metric%d_bytes", i), "gauge", "")
	}
	return b.String()
}

func bigOpenMetrics(series int) string {
	var b strings.Builder
	for i := range series / 4 {
		if i%500 == 0 {
			fmt.Fprintf(&b, "# TYPE kube_pod_%d counter\n# HELP kube_pod_%d Help.\n", i/500, i/500)
		}
		for j := range 4 {
			fmt.Fprintf(&b, "kube_pod_%d_total{namespace=\"ns%d\",pod=\"pod-%d-abcdef\",uid=\"%032x\",container=\"c%d\"} %d.0", i/500, i%20, i, i*7, j, i*j)
			if j == 0 {
				fmt.Fprintf(&b, " # {trace_id=\"%032x\"} 1.5 1700000000.123", i)
			}
			b.WriteByte('\n')
		}
	}
	b.WriteString("# EOF\n")
	return b.String()
}

func several(f func(seed uint64) string, n int) (all [][]byte) {
	for i := range n {
		all = append(all, []byte(f(uint64(i))))
	}
	return all
}

func showBytes(t *Target, at time.Time, media string, page []byte) Result {
	s, err := t.Begin(at, media)
	if err != nil {
		return t.Fail(at, Report{Err: err})
	}
	const chunk = 32 << 10
	for len(page) > chunk {
		if s.Feed(page[:chunk]) != nil {
			break
		}
		page = page[chunk:]
	}
	_ = s.Feed(page)
	return s.End(Report{})
}

func BenchmarkPage(b *testing.B) {
	om := []byte(bigOpenMetrics(40_000))
	for _, k := range []struct {
		name, media string
		pages       [][]byte
	}{{"node", typeText, several(nodePage, 4)}, {"openmetrics", typeOM, [][]byte{om}}} {
		samples := bytes.Count(k.pages[0], []byte("\n")) - bytes.Count(k.pages[0], []byte("# "))
		per := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(samples), "ns/sample")
			b.SetBytes(int64(len(k.pages[0])))
		}
		for _, reuse := range []bool{true, false} {
			b.Run(fmt.Sprintf("page=%s/plan/reuse=%v", k.name, reuse), func(b *testing.B) {
				j := newTestJob(b, Config{Scrape: testScrapeConfig(), Reuse: reuse})
				t := testTarget(j, 1)
				for range 3 {
					showBytes(t, start, k.media, k.pages[0]).Release()
				}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i++
					r := showBytes(t, start, k.media, k.pages[i%len(k.pages)])
					if r.Misses > 0 || r.Err != nil {
						b.Fatal(r.Misses, r.Err)
					}
					r.Release()
				}
				per(b)
			})
		}
		b.Run(fmt.Sprintf("page=%s/textparse", k.name), func(b *testing.B) {
			i := 0
			for b.Loop() {
				i++
				p, _ := textparse.New(k.pages[i%len(k.pages)], k.media, nil, textparse.ParserOptions{})
				for {
					if _, err := p.Next(); errors.Is(err, io.EOF) {
						break
					}
				}
			}
			per(b)
		})
		b.Run(fmt.Sprintf("page=%s/indexbyte", k.name), func(b *testing.B) {
			i, lines := 0, 0
			for b.Loop() {
				i++
				for page := k.pages[i%len(k.pages)]; ; lines++ {
					n := bytes.IndexByte(page, '\n')
					if n < 0 {
						break
					}
					page = page[n+1:]
				}
			}
			per(b)
		})
	}
}

// fleetPage returns the page of a distinct kind of program: counters, histograms and summaries.
func fleetPage(kind, samples int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 3))
	var b bytes.Buffer
	for n, f := 0, 0; n < samples; f++ {
		name := fmt.Sprintf("program%d_family%d", kind, f)
		switch (kind + f/8) % 3 {
		case 0:
			fmt.Fprintf(&b, "# HELP %s_total Some help.\n# TYPE %s_total counter\n", name, name)
			for i := range 12 {
				fmt.Fprintf(&b, "%s_total{handler=\"/path%d\",code=\"%d\"} %d\n", name, f+i/3, 200+i%3*100, r.IntN(1e7))
				n++
			}
		case 1:
			fmt.Fprintf(&b, "# HELP %s_seconds Some help.\n# TYPE %s_seconds histogram\n", name, name)
			for i := range 4 {
				count := r.IntN(1000)
				labels := fmt.Sprintf("route=\"/api/path%d\",method=\"%s\"", f, []string{"GET", "PUT", "POST", "DELETE"}[i])
				for bound := range 12 {
					fmt.Fprintf(&b, "%s_seconds_bucket{%s,le=\"%d\"} %d\n", name, labels, 1<<bound, count*bound)
				}
				fmt.Fprintf(&b, "%s_seconds_bucket{%s,le=\"+Inf\"} %d\n%s_seconds_sum{%s} %d.5\n%s_seconds_count{%s} %d\n",
					name, labels, count*12, name, labels, count, name, labels, count*12)
				n += 15
			}
		default:
			fmt.Fprintf(&b, "# HELP %s_bytes Some help.\n# TYPE %s_bytes gauge\n", name, name)
			for i := range 6 {
				fmt.Fprintf(&b, "%s_bytes{class=\"org.example.program%d.internal.ServiceImpl%d\",pool=\"Eden Space %d\",application=\"program%d\"} %g\n",
					name, kind, f%50, i, kind, float64(r.IntN(1e9))/100)
				n++
			}
		}
	}
	return b.Bytes()
}

// BenchmarkFleet reads pages of many kinds in turn, whose parse caches exceed the CPU's caches.
func BenchmarkFleet(b *testing.B) {
	const kinds, samples = 40, 3000
	j := newTestJob(b, Config{Scrape: testScrapeConfig(), Reuse: true})
	var targets []*Target
	var pages [][]byte
	total := 0
	for kind := range kinds {
		targets = append(targets, testTarget(j, kind))
		pages = append(pages, fleetPage(kind, samples, 1))
		total += bytes.Count(pages[kind], []byte("\n")) - bytes.Count(pages[kind], []byte("# "))
	}
	body := make([]byte, 0, 1<<20)
	scrape := func(kind int) {
		body = append(body[:0], pages[kind]...) // in memory that was just written, as after decompression
		r := showBytes(targets[kind], start, typeText, body)
		if r.Err != nil {
			b.Fatal(r.Err)
		}
		r.Release()
	}
	for range 3 {
		for kind := range kinds {
			scrape(kind)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for kind := range kinds {
			scrape(kind)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(total), "ns/sample")
}

// A known sample causes no allocation: a scrape allocates only the metrics that it hands out, and with Reuse only a
// little, which does not grow with the page. (pdata allocates for a changed number, so the page is always the same.)
func TestKnownPagesAllocateNothing(t *testing.T) {
	t.Cleanup(handback.Poison(false)) // it takes memory, and loses what is kept
	for _, k := range []struct{ media, page string }{
		{typeText, nodePage(1)}, {typeText, node}, {typeText, nodePage(2) + node},
	} {
		target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true}), 1)
		page := []byte(k.page)
		scrape := func() { showBytes(target, start, k.media, page).Release() }
		scrape()
		scrape()
		require.LessOrEqual(t, alloctest.PerRun(scrape), 12.0)
	}
	target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig()}), 1)
	page := []byte(nodePage(1))
	showBytes(target, start, typeText, page)
	read := func() {
		s, err := target.Begin(start, typeText)
		if err != nil || s.Feed(page) != nil || s.strayed || s.next != len(s.expected) {
			t.Fatal("not as planned")
		}
		s.release()
	}
	require.LessOrEqual(t, alloctest.PerRun(read), 10.0, "whatever the page's length")
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A thousand targets with the same page cost little more than one.
func TestMemoryFollowsShapes(t *testing.T) {
	racetest.Sequential(t)
	page := []byte(nodePage(1))
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	scrape := func(t *Target, p []byte) {
		for range 2 {
			showBytes(t, start, typeText, p)
		}
	}
	first := testTarget(j, 0)
	scrape(first, page)
	const targets = 500
	kept := make([]*Target, 0, targets)
	before := heap()
	for i := range targets {
		kept = append(kept, testTarget(j, i+1))
		scrape(kept[i], page)
	}
	each := (heap() - before) / targets
	t.Logf("%d B for a target of a known shape", each)
	require.LessOrEqual(t, each, int64(1500))
	require.Equal(t, 1, j.Stats().Plans)

	// A target with a few lines of its own shares all others.
	more := append(bytes.Clone(page), "own_metric{x=\"1\"} 1\n"...)
	odd := testTarget(j, 2000)
	before = heap()
	scrape(odd, more)
	t.Logf("%.1f B a series for a page that is almost known", float64(heap()-before)/508)
	require.LessOrEqual(t, float64(heap()-before)/508, 60.0)

	fresh := newTestJob(t, Config{Scrape: testScrapeConfig()})
	big := []byte(bigText(20_000))
	before = heap()
	one := testTarget(fresh, 1)
	scrape(one, big)
	t.Logf("%.1f B a series beyond %.1f B of text for a new page", float64(heap()-before)/20_000-float64(len(big))/20_000, float64(len(big))/20_000)
	require.LessOrEqual(t, float64(heap()-before)/20_000, 170.0)
	runtime.KeepAlive(kept)
	runtime.KeepAlive(one)
	runtime.KeepAlive(odd)
	runtime.KeepAlive(first)
}

func bigText(n int) string {
	var b strings.Builder
	b.WriteString("# TYPE m gauge\n")
	for i := range n {
		fmt.Fprintf(&b, "m{namespace=\"ns\",pod=\"pod-%d-abcdef\",container=\"c\"} %d\n", i, i)
	}
	return b.String()
}

// Series that come and go leave nothing behind.
func TestChurnDoesNotGrowMemory(t *testing.T) {
	j := newTestJob(t, Config{Scrape: testScrapeConfig()})
	target := testTarget(j, 1)
	for n := range 200 {
		var b strings.Builder
		for i := range 500 {
			fmt.Fprintf(&b, "m{id=\"%d\"} 1\n", i+n*50)
		}
		show(target, start, typeText, b.String(), 1<<20)
	}
	s := j.Stats()
	require.Equal(t, 1, s.Plans)
	require.Less(t, s.Lines, 3000)
	require.Less(t, s.Points, 3000)
}
