// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/racetest"
)

// A kubelet serves the metrics of pods that are on no other node, the same metrics for each.
type kubelet struct {
	*rand.Rand

	pods    []string
	metrics int
}

func newKubelet(seed uint64, pods int) *kubelet {
	n := &kubelet{Rand: rand.New(rand.NewPCG(seed, 11)), metrics: podMetrics}
	for range pods {
		n.pods = append(n.pods, n.pod())
	}
	return n
}

func (n *kubelet) pod() string { return fmt.Sprintf("%016x", n.Uint64()) }

const podMetrics = 20

// page returns all metrics of all pods: each with a container, and a sandbox with few labels.
func (n *kubelet) page() string {
	var b strings.Builder
	for m := range n.metrics {
		kind := []string{"counter", "gauge"}[m%2]
		fmt.Fprintf(&b, "# HELP container_%d Help.\n# TYPE container_%d %s\n", m, m, kind)
		for i, pod := range n.pods {
			fmt.Fprintf(&b, "container_%d{container=\"main\",id=\"/kubepods/%s/main\",image=\"example.org/%s\",name=\"k8s_%s\",namespace=\"team-%d\",pod=\"app-%s\"} %d\n",
				m, pod, pod, pod, i%3, pod, n.IntN(1000))
			fmt.Fprintf(&b, "container_%d{container=\"\",id=\"/kubepods/%s\",image=\"\",name=\"\",namespace=\"team-%d\",pod=\"app-%s\"} %d\n", m, pod, i%3, pod, n.IntN(1000))
		}
	}
	return b.String()
}

// Nodes with different pods share their lines: a target's own values are the names of its pods. Pods that come and go
// leave nothing behind.
func TestPodsOfNodesShareLines(t *testing.T) {
	racetest.Sequential(t)
	const nodes, pods, watched = 40, 8, 1
	cfg := Config{Scrape: testScrapeConfig()}
	oracle := newTestJob(t, cfg)
	cfg.Reuse = true
	j := newTestJob(t, cfg)
	var targets []*Target
	watchedAt := map[int]*Target{}
	var all []*kubelet
	for i := range nodes {
		targets, all = append(targets, testTarget(j, i)), append(all, newKubelet(uint64(i), pods))
		if i < watched || i >= nodes-watched { // the first ones share less
			watchedAt[i] = testTarget(oracle, i)
		}
	}
	peak := 0
	for n := range 100 {
		for i, k := range all {
			if n > 2 && k.IntN(6) == 0 { // 2 % of the pods
				at := k.IntN(pods)
				if k.IntN(2) == 0 {
					k.pods[at] = k.pod()
				} else { // it moves to another place on the page
					k.pods = append(append(k.pods[:at], k.pods[at+1:]...), k.pod())
				}
			}
			page, at := k.page(), start.Add(time.Duration(n)*time.Second)
			got := show(targets[i], at, typeText, page, 1<<20)
			require.NoError(t, got.Err)
			if w := watchedAt[i]; w != nil {
				want := show(w, at, typeText, page, 1<<20)
				require.Equal(t, canon(want.Metrics), canon(got.Metrics), "scrape %d of target %d", n, i)
				require.Equal(t, want.Added, got.Added)
			}
			got.Release()
		}
		peak = max(peak, j.Stats().Lines)
		if n == 0 || n == 2 || n%50 == 49 {
			t.Logf("scrape %d: %+v", n, j.Stats())
		}
	}
	const series = nodes * pods * 2 * podMetrics
	require.Less(t, peak, series*3/4)
	require.Less(t, j.Stats().Plans, nodes/2, "they are the same again")
	require.Less(t, j.Stats().Lines, series/2)
}

// move changes the pods: one is replaced, moves, is added, is removed, comes back, or gets the name of a removed one.
func (n *kubelet) move(gone *[]string) {
	at := n.IntN(len(n.pods))
	switch n.IntN(8) {
	case 0, 1, 2:
		*gone = append(*gone, n.pods[at])
		n.pods[at] = n.pod()
	case 3:
		n.pods = append(append(n.pods[:at:at], n.pods[at+1:]...), n.pods[at])
	case 4:
		n.pods = slices.Insert(n.pods, at, n.pod())
	case 5:
		if len(n.pods) > 2 {
			*gone = append(*gone, n.pods[at])
			n.pods = slices.Delete(n.pods, at, at+1)
		}
	case 6:
		if len(*gone) > 0 {
			n.pods[at] = (*gone)[n.IntN(len(*gone))]
		}
	default:
		other := n.IntN(len(n.pods))
		n.pods[at], n.pods[other] = n.pods[other], n.pods[at]
	}
}

// Whatever happens to pods, and whatever rules do to their labels, targets that share lines have the same results as
// alone.
func TestPodsThatMoveAreWhatTheyAreAlone(t *testing.T) {
	racetest.Sequential(t)
	const nodes, scrapes = 8, 40
	several := 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 18))
		cfg := Config{Scrape: testScrapeConfig()}
		if seed%3 > 0 {
			cfg.Scrape.MetricRelabelConfigs = randomRules(r, cfg.Scrape)
		}
		shared := cfg
		shared.Reuse = seed%2 == 0
		j := newTestJob(t, shared)
		if seed%2 > 0 { // split texts into pieces
			j.rules.MostWhole = 20 * int(seed%5)
		}
		every := time.Second
		if seed%4 == 1 {
			every = 2 * calm
		}
		var all []*kubelet
		var targets, alone []*Target
		for i := range nodes {
			k := newKubelet(seed<<8|uint64(i), 4)
			k.metrics = 9 + int(seed%2)*4
			all = append(all, k)
			targets, alone = append(targets, testTarget(j, i)), append(alone, testTarget(newTestJob(t, cfg), i))
		}
		var gone []string
		for n := range scrapes {
			for i, k := range all {
				if n > 1 && k.IntN(3) == 0 {
					k.move(&gone)
				}
				page, at := k.page(), start.Add(time.Duration(n)*every)
				switch k.IntN(24) {
				case 0:
					page = errorPage
				case 1:
					page = page[:len(page)/2] // in the middle of a line
				}
				got, want := show(targets[i], at, typeText, page, 1<<20), show(alone[i], at, typeText, page, 1<<20)
				require.Equal(t, want.Err == nil, got.Err == nil, "%v, %v", want.Err, got.Err)
				require.Equal(t, canon(want.Metrics), canon(got.Metrics), "seed %d: scrape %d of target %d", seed, n, i)
				require.Equal(t, []int{want.Samples, want.PostRelabel, want.Added}, []int{got.Samples, got.PostRelabel, got.Added})
				got.Release()
				want.Release()
			}
		}
		for _, target := range targets {
			if target.cohort.Own.HasSeveral(&target.Identity) {
				several++
			}
		}
	}
	require.Greater(t, several, 20, "targets that have several values of a label")
}
