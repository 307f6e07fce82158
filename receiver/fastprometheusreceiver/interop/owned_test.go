// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/promwrite"
)

const ownedRoad = `
receivers: {fastprometheus: {config: {scrape_configs: [{job_name: a, scrape_interval: 100ms, scrape_timeout: 100ms, static_configs: [%s]}]}}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 4000}
  cardinality: {}
  cardinality/few: {rules: [{name: few, match: {metric: "more_*"}, max_series: 1, on_exceed: [drop]}]}
exporters: {remotewrite: {%s, target_info: {enabled: false}, batch: {timeout: 20ms}}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [fastprometheus], processors: [%s], exporters: [remotewrite]}}
`

const (
	ownedTargets = 12
	ownedSeries  = 40
	ownedPages   = 40
)

// A street has targets that each have their own name on every line. Values follow from the labels.
type street struct {
	isApart bool // each line is about something else, which has the target's name in its own

	mu      sync.Mutex
	pages   [ownedTargets]int
	arrived map[string]*[ownedTargets]int // samples, by the path of the request
	scraped map[string]*[ownedTargets]int // pages that were scraped in time, as `up` says
	wrong   []string
}

// who returns the name of a target on a page. It changes from time to time, as after a restart.
func who(target, page int) string { return fmt.Sprintf("pod-%d-%d", target, page/(12+target)) }

func (s *street) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.arrived[r.URL.Path] != nil {
		if err := s.take(r); err != nil {
			s.wrong = append(s.wrong, err.Error())
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	target, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/target/"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	n := s.pages[target]
	s.pages[target]++
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for i := range ownedSeries {
		if n%15 > 12 && i%7 == target%7 { // missing for a while
			continue
		}
		labels := []promwrite.Label{{Name: "__name__", Value: fmt.Sprint("owned_", i/4)}, {Name: "k", Value: strconv.Itoa(i % 4)}, {Name: "pod", Value: who(target, n)}}
		if s.isApart {
			labels[2].Value += fmt.Sprint("-", i)
			if (i+target)%5 == 0 {
				labels = slices.Delete(labels, 1, 2)
				fmt.Fprintf(w, "owned_%d{pod=%q} %v\n", i/4, labels[1].Value, proof(labels, 0))
				continue
			}
		}
		fmt.Fprintf(w, "owned_%d{pod=%q,k=%q} %v\n", i/4, labels[2].Value, labels[1].Value, proof(labels, 0))
	}
	fmt.Fprintln(w, "shared 1")
	for i := range 3 {
		fmt.Fprintf(w, "more_%d{pod=%q} 1\n", i%2, who(target, n)+"-"+strconv.Itoa(i))
	}
}

func (s *street) take(r *http.Request) error {
	return eachSeries(r, func(series *promwrite.Series) {
		of := map[string]string{}
		var labels []promwrite.Label
		for _, l := range series.Labels {
			if of[l.Name] = l.Value; l.Name != "instance" && l.Name != "job" {
				labels = append(labels, l)
			}
		}
		if of["__name__"] == "up" {
			number, err := strconv.Atoi(strings.TrimPrefix(of["instance"], "target-"))
			for _, v := range series.Samples {
				if err == nil && v.Value == 1 {
					s.scraped[r.URL.Path][number]++
				}
			}
		}
		if !strings.HasPrefix(of["__name__"], "owned_") {
			return
		}
		target, _, _ := strings.Cut(strings.TrimPrefix(of["pod"], "pod-"), "-")
		number, err := strconv.Atoi(target)
		for _, v := range series.Samples {
			if v.Value == proof(labels, 0) && err == nil && of["instance"] == "target-"+target {
				s.arrived[r.URL.Path][number]++
			} else if math.Float64bits(v.Value) != promwrite.StaleNaN || of["instance"] != "target-"+target {
				s.wrong = append(s.wrong, fmt.Sprint(series.Labels, " is ", v.Value))
			}
		}
	})
}

// Targets that each have values of their own on their lines share memory, without these values as long as the exporter
// knows to which target they belong. Samples arrive with the right labels while series come, go and change.
func TestValuesOfTheirOwnArriveAsTheTargets(t *testing.T) {
	const one = `endpoint: "ADDRESS/write"`
	t.Run("one destination", func(t *testing.T) { checkOwned(t, false, "memory_limiter", one, "/write") })
	t.Run("two destinations", func(t *testing.T) {
		checkOwned(t, false, "memory_limiter", `endpoints: [{endpoint: "ADDRESS/write"}, {endpoint: "ADDRESS/other", compression: snappy}]`, "/write", "/other")
	})
	t.Run("limits", func(t *testing.T) { checkOwned(t, false, "memory_limiter, cardinality", one, "/write") })
	t.Run("about other things", func(t *testing.T) { checkOwned(t, true, "memory_limiter", one, "/write") })
	t.Run("about other things, limits", func(t *testing.T) { checkOwned(t, true, "cardinality/few, cardinality", one, "/write") })
	t.Run("limits that are met", func(t *testing.T) { checkOwned(t, false, "cardinality/few, cardinality", one, "/write") })
}

func checkOwned(t *testing.T, isApart bool, processors, destinations string, paths ...string) {
	s := &street{isApart: isApart, arrived: map[string]*[ownedTargets]int{}, scraped: map[string]*[ownedTargets]int{}}
	for _, path := range paths {
		s.arrived[path], s.scraped[path] = &[ownedTargets]int{}, &[ownedTargets]int{}
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	var targets []string
	for i := range ownedTargets {
		targets = append(targets, fmt.Sprintf(`{targets: ["%s"], labels: {instance: target-%d, __metrics_path__: /target/%d}}`, server.Listener.Addr(), i, i))
	}
	c := start(t, fmt.Sprintf(ownedRoad, strings.Join(targets, ", "), strings.ReplaceAll(destinations, "ADDRESS", server.URL), processors))
	said := c.log.FilterMessage(used).All()
	require.Len(t, said, 1)
	require.Equal(t, true, said[0].ContextMap()["attributes_are_written_when_read"])
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, n := range s.pages {
			if n < ownedPages {
				return false
			}
		}
		return true
	}, patience, glance)
	c.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.wrong[:min(len(s.wrong), 3)])
	for path, arrived := range s.arrived {
		for i, n := range arrived {
			pages := s.scraped[path][i]
			require.Positive(t, pages, "target %d, %s", i, path)
			require.GreaterOrEqual(t, n, pages*(ownedSeries-6), "target %d, %d pages, %s", i, pages, path)
		}
	}
}
