// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
)

// A host is a page about pods that are on no other host, with metrics of all kinds.
type host struct {
	*rand.Rand

	pods  []string
	other string // a pod that occurs only once, and so has no slot
}

func newHost(seed uint64, pods int) *host {
	h := &host{Rand: rand.New(rand.NewPCG(seed, 25)), other: "app-other"}
	for range pods {
		h.pods = append(h.pods, h.pod())
	}
	return h
}

func (h *host) pod() string {
	return fmt.Sprintf("app-%0*x", 4+h.IntN(12), h.Uint64()>>32)
}

// page returns gauges, histograms and summaries of all pods, in either format.
func (h *host) page(media string) string {
	isOpen := media == typeOM
	var b strings.Builder
	family := func(name, kind string, rows func(pod string)) {
		if isOpen {
			fmt.Fprintf(&b, "# TYPE %s %s\n# HELP %s Help.\n", name, kind, name)
		} else {
			fmt.Fprintf(&b, "# HELP %s Help.\n# TYPE %s %s\n", name, name, kind)
		}
		for _, pod := range h.pods {
			rows(pod)
		}
	}
	for m := range 8 {
		name := fmt.Sprintf("container_%d", m)
		family(name, "gauge", func(pod string) {
			fmt.Fprintf(&b, "%s{container=\"main\",id=\"/kubepods/%s/main\",pod=%q,zone=\"z\"} %d\n", name, pod, pod, h.IntN(1000))
			fmt.Fprintf(&b, "%s{container=\"\",id=\"/kubepods/%s\",pod=%q} %g\n", name, pod, pod, h.Float64())
		})
	}
	family("took", "histogram", func(pod string) {
		n := h.IntN(50)
		fmt.Fprintf(&b, "took_bucket{pod=%q,le=\"1.0\"} %d\ntook_bucket{pod=%q,le=\"+Inf\"} %d", pod, n, pod, 2*n)
		if isOpen && n%3 == 0 {
			fmt.Fprintf(&b, " # {trace_id=\"%032x\"} 3.5", h.Uint64())
		}
		fmt.Fprintf(&b, "\ntook_sum{pod=%q} %d.5\ntook_count{pod=%q} %d\n", pod, n, pod, 2*n)
		if isOpen {
			fmt.Fprintf(&b, "took_created{pod=%q} 1700000000.5\n", pod)
		}
	})
	family("waited", "summary", func(pod string) {
		fmt.Fprintf(&b, "waited{pod=%q,quantile=\"0.5\"} %d\nwaited_sum{pod=%q} %d\nwaited_count{pod=%q} %d\n", pod, h.IntN(9), pod, h.IntN(99), pod, h.IntN(99))
	})
	fmt.Fprintf(&b, "# TYPE last gauge\nlast{pod=%q} 1\nlast 2\n", h.other)
	if isOpen {
		b.WriteString("# EOF\n")
	}
	return b.String()
}

// spoil returns the page with something on it that differs from the last page by more than pods that replace others.
func (h *host) spoil(page string) string {
	at := strings.LastIndex(page, "last 2")
	switch h.IntN(12) {
	case 0:
		return page[:len(page)/2]
	case 1: // one line less, far behind
		return page[:at] + page[at+len("last 2\n"):]
	case 2: // one line more
		return page[:at] + "last{pod=\"app-new\"} 3\n" + page[at:]
	case 3: // a timestamp
		return page[:at] + "last 2 1700000000\n" + page[at+len("last 2\n"):]
	case 4: // a line that cannot be parsed, after all pods have appeared
		return page[:at] + "last{ 2\n" + page[at+len("last 2\n"):]
	case 5: // a pod that appears twice
		return strings.Replace(page, "last{", "last{zone=\"z\",", 1)
	case 6: // a name that has to be escaped
		return strings.ReplaceAll(page, h.pods[0], `app-\\x`)
	case 7: // a name that is too long for a slot
		return strings.ReplaceAll(page, h.pods[0], "app-"+strings.Repeat("x", 300))
	case 8: // invalid UTF-8
		return strings.ReplaceAll(page, h.pods[0], "app-\xff")
	case 9: // a line break in a name, which only one of the formats has
		return strings.ReplaceAll(page, h.pods[0], "app\n"+h.pods[0])
	case 10: // an empty name
		return strings.ReplaceAll(page, h.pods[0], "")
	default: // a name that is not the same everywhere
		first := strings.Index(page, h.pods[0]) + len(h.pods[0])
		return page[:first] + strings.Replace(page[first:], "pod=\""+h.pods[0], "pod=\"app-"+h.pods[0], 1+h.IntN(3))
	}
}

// change changes the pods. Mostly, one replaces another.
func (h *host) change() {
	at, other := h.IntN(len(h.pods)), h.IntN(len(h.pods))
	switch h.IntN(12) {
	case 0: // two pods swap their names
		h.pods[at], h.pods[other] = h.pods[other], h.pods[at]
	case 1: // one gets the name of another, which gets a new one
		h.pods[at], h.pods[other] = h.pods[other], h.pod()
	case 2: // one gets the name of another line
		h.other, h.pods[at] = h.pods[at], h.other
	case 3: // the other line gets the name of a pod
		h.other = h.pods[at]
	case 4: // a name that begins with the previous one
		h.pods[at] += "x"
	case 5: // a name that the previous one began with
		h.pods[at] = h.pods[at][:len(h.pods[at])-1]
	case 6:
		h.pods[at], h.pods[other] = h.pod(), h.pod()
	default:
		h.pods[at] = h.pod()
	}
}

// Pages on which pods replace others have the same results as without sharing, whatever else is on them.
func TestPodsInThePlaceOfOthersAreWhatTheyAreAlone(t *testing.T) {
	racetest.Sequential(t)
	const hosts, scrapes = 8, 30
	exchanged, spoilt := 0, 0
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 26))
			cfg := Config{Scrape: testScrapeConfig(), NoStaleMarkers: seed%8 == 7}
			if seed%4 == 3 {
				cfg.Scrape.MetricRelabelConfigs = randomRules(r, cfg.Scrape)
			}
			shared := cfg
			shared.Reuse = seed%2 == 0
			defer handback.Poison(seed%4 == 0)()
			media := []string{typeText, typeOM}[seed/2%2]
			j := newTestJob(t, shared)
			if seed%4 > 1 { // texts have several pieces
				j.rules.MostWhole = 20 * int(seed%5)
			}
			switch seed % 16 {
			case 6, 8: // no trees are kept
				j.tree.Idle = noTrees
			case 10, 12: // and metrics are not built in one go either
				j.tree.Idle, j.tree.Part = noTrees, 3
			}
			var all []*host
			var targets, alone []*Target
			for i := range hosts {
				all = append(all, newHost(seed<<8|uint64(i), 5))
				targets, alone = append(targets, testTarget(j, i)), append(alone, testTarget(newTestJob(t, cfg), i))
			}
			for n := range scrapes {
				for i, h := range all {
					if n > 1 && h.IntN(2) == 0 {
						h.change()
					}
					page, at := h.page(media), start.Add(time.Duration(n)*time.Second)
					isSpoilt := n > 2 && h.IntN(8) == 0
					if isSpoilt {
						page = h.spoil(page)
					}
					if h.IntN(30) == 0 {
						page = errorPage
					}
					size := []int{1 << 20, 700, 100}[h.IntN(3)]
					was := targets[i].Version
					got, want := show(targets[i], at, media, page, size), show(alone[i], at, media, page, 1<<20)
					require.Equal(t, want.Err == nil, got.Err == nil, "seed %d: %v, %v of %q", seed, want.Err, got.Err, page)
					md, last := merge(t, got)
					require.Equal(t, canon(want.Metrics), canon(md), "seed %d: scrape %d of target %d: %q", seed, n, i, page)
					require.Equal(t, []int{want.Samples, want.PostRelabel, want.Added}, []int{got.Samples, got.PostRelabel, got.Added}, "seed %d", seed)
					if got.Hits > 0 && targets[i].Version != was && got.Added > 0 && n > 2 {
						exchanged++
					}
					if isSpoilt && targets[i].cohort.Own.HasSeveral(&targets[i].Identity) {
						spoilt++
					}
					last.Release()
					want.Release()
				}
			}
		})
	}
	require.Greater(t, exchanged, 100, "pages that were read as the last one is")
	require.Greater(t, spoilt, 50)
}

// A pod that replaces another adds no line, and nothing on its page is looked up.
func TestPodsInThePlaceOfOthersAreNotLookedUp(t *testing.T) {
	racetest.Sequential(t)
	const hosts, pods = 10, 6
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true})
	var all []*host
	var targets []*Target
	for i := range hosts {
		all, targets = append(all, newHost(uint64(i), pods)), append(targets, testTarget(j, i))
	}
	for n := range 4 {
		for i, h := range all {
			show(targets[i], start.Add(time.Duration(n)*time.Second), typeText, h.page(typeText), 1<<20).Release()
		}
	}
	lines, plans := j.Stats().Lines, j.Stats().Plans
	several := 0
	for n := range 20 {
		for i, h := range all {
			if !targets[i].cohort.Own.HasSeveral(&targets[i].Identity) {
				continue
			}
			several++
			h.pods[h.IntN(pods)] = h.pod()
			page := h.page(typeText)
			got := show(targets[i], start.Add(time.Duration(n+4)*time.Second), typeText, page, 1<<20)
			require.NoError(t, got.Err)
			require.Zero(t, got.Misses, "scrape %d of target %d", n, i)
			require.Equal(t, strings.Count(page, "\n"), got.Hits)
			require.Equal(t, (strings.Count(page, "\n")-2*10-1-2)/pods, got.Added)
			got.Release()
		}
	}
	require.Greater(t, several, 50)
	require.Equal(t, lines, j.Stats().Lines)
	require.Equal(t, plans, j.Stats().Plans)
}
