// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/advice"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// subject is the view of a test's targets.
type subject struct {
	*consoletest.World

	view *View
}

func open(t *testing.T) *subject {
	t.Helper()
	w := consoletest.New(t)
	return &subject{w, New(w.Sources)}
}

func (s *subject) list(query string) targetListJSON {
	s.T.Helper()
	return consoletest.Get[targetListJSON](s.T, s.view.List, query)
}

// of sets the target of a request.
func of(id string) func(*http.Request) {
	return func(r *http.Request) { r.SetPathValue("id", id) }
}

func (s *subject) target(id string) targetDetailJSON {
	s.T.Helper()
	return consoletest.Get[targetDetailJSON](s.T, s.view.Target, "", of(id))
}

// countedLabels counts how often labels are requested.
type countedLabels struct {
	consoletest.TargetLabels

	asked *int
}

func (c countedLabels) Discovered() []inspect.Label {
	*c.asked++
	return c.TargetLabels.Discovered()
}

func TestDroppedTargetsAreLookedAtOnce(t *testing.T) {
	const dropped = 500
	asked := 0
	s := open(t)
	s.Register(inspect.Source{Kind: component.KindReceiver, ID: consoletest.ID("fastprometheus"), Targets: func() inspect.Targets {
		job := inspect.Job{Name: "node", Drops: dropped, Targets: []inspect.Target{{State: inspect.Healthy, URL: "http://a/metrics"}}}
		for i := range dropped {
			address := []inspect.Label{{Name: labelAddress, Value: fmt.Sprintf("dropped:%03d", i)}}
			job.Dropped = append(job.Dropped, countedLabels{consoletest.TargetLabels{Found: address}, &asked})
		}
		return inspect.Targets{Jobs: []inspect.Job{job}}
	}})
	list := s.list("?state=dropped&limit=10&offset=20&q=dropped:+:")
	require.Equal(t, 1, list.Total)
	require.Equal(t, dropped, list.Matched)
	require.Len(t, list.Targets, 10)
	require.Equal(t, "dropped:020", list.Targets[0].URL)
	require.Equal(t, dropped+10, asked, "for their addresses, and to show some")
}

func TestTargetsArePagedFilteredAndSorted(t *testing.T) {
	s := open(t)
	s.Register(consoletest.Scraped(1000))
	f := func(query string, matched int, first string) {
		t.Helper()
		list := s.list("?" + query)
		require.Equal(t, 1000, list.Total)
		require.Equal(t, meter.Counts{Healthy: 990, Failing: 10, Dropped: 1}, list.Counts)
		require.Equal(t, matched, list.Matched)
		require.LessOrEqual(t, len(list.Targets), list.Limit)
		if first == "" {
			require.Empty(t, list.Targets)
			return
		}
		require.Equal(t, first, list.Targets[0].URL)
	}
	f("", 1000, "http://10.0.0.0:9100/metrics")
	f("limit=0", 1000, "")
	f("offset=5000", 1000, "")
	f("order=desc", 1000, "http://10.0.3.9:9100/metrics")
	f("sort=samples&order=desc&offset=1", 1000, "http://10.0.3.230:9100/metrics")
	f("sort=bytes", 1000, "http://10.0.3.231:9100/metrics")
	f("sort=last_scrape&order=desc", 1000, "http://10.0.3.231:9100/metrics")
	f("sort=duration&order=desc", 1000, "http://10.0.3.231:9100/metrics")
	f("sort=state", 1000, "http://10.0.0.199:9100/metrics")
	f("sort=error&order=desc", 1000, "http://10.0.3.31:9100/metrics")
	f("sort=plan", 1000, "http://10.0.0.0:9100/metrics")
	f("sort=job", 1000, "http://10.0.0.0:9100/metrics")
	f("state=failing", 10, "http://10.0.0.199:9100/metrics")
	f("state=healthy&q=10.0.2.", 254, "http://10.0.2.0:9100/metrics")
	f("state=unknown", 0, "")
	f("state=dropped", 1, "dropped:1")
	f("state=dropped&q=dropped", 1, "dropped:1")
	f("reason=connection_refused", 10, "http://10.0.0.199:9100/metrics")
	f("q=rack%3Dr7", 25, "http://10.0.0.127:9100/metrics")
	f("q=R7+NORTH", 25, "http://10.0.0.127:9100/metrics")
	f("q=refused", 10, "http://10.0.0.199:9100/metrics")
	f("q=nowhere", 0, "")
	f("job=node", 1000, "http://10.0.0.0:9100/metrics")
	f("job=other", 0, "")
	f("receiver=other", 0, "")
	f("receiver=fastprometheus", 1000, "http://10.0.0.0:9100/metrics")

	list := s.list("")
	require.Equal(t, []jobJSON{{Receiver: "fastprometheus", Job: "node", Targets: 1000, Counts: meter.Counts{Healthy: 990, Failing: 10, Dropped: 1}}}, list.Jobs)
	require.Len(t, list.Errors, 1)
	require.Equal(t, 10, list.Errors[0].Count)
	require.Equal(t, []string{"node"}, list.Errors[0].Jobs)
}

// Receivers whose targets fail in the same way have one kind of error, which lists all of their statuses.
func TestErrorsOfSeveralReceiversAreOfOneKind(t *testing.T) {
	s := open(t)
	for name, status := range map[string]string{"fastprometheus/a": "503 Service Unavailable", "fastprometheus/b": "500 Internal Server Error"} {
		s.Register(inspect.Source{Kind: component.KindReceiver, ID: consoletest.ID(name), Targets: func() inspect.Targets {
			target := inspect.Target{State: inspect.Failing, URL: "http://a/metrics", Reason: advice.ReasonStatus, LastError: "server returned HTTP status " + status, Labels: consoletest.TargetLabels{}}
			return inspect.Targets{Jobs: []inspect.Job{{Name: name, Targets: []inspect.Target{target}}}}
		}})
	}
	list := s.list("")
	require.Len(t, list.Errors, 1)
	require.Equal(t, 2, list.Errors[0].Count)
	require.Equal(t, []string{"fastprometheus/a", "fastprometheus/b"}, list.Errors[0].Jobs)
	require.Contains(t, list.Errors[0].Text, ": 500, 503")
}

func TestTargetsThatMakeNoSense(t *testing.T) {
	s := open(t)
	for query, want := range map[string]string{
		"limit=1001": "`limit`", "limit=x": "`limit`", "limit=-1": "`limit`", "offset=-1": "`offset`", "sort=labels": "`sort`", "order=up": "`order`",
		"state=elsewhere": "`state`", "format=xml": "`format`", "q=" + strings.Repeat("x", 1001): "`q`", "q=" + strings.Repeat("x+", 30): "`q`",
	} {
		status, code, message := consoletest.Fault(t, s.view.List, "?"+query, "")
		require.Equal(t, http.StatusBadRequest, status, query)
		require.Equal(t, "bad_request", code)
		require.Contains(t, message, want)
	}
}

func TestEmptyListsAreLists(t *testing.T) {
	_, _, text := consoletest.Ask(t, open(t).view.List, "", "")
	require.Contains(t, text, `"jobs":[],"errors":[],"targets":[]`)
}

func TestTarget(t *testing.T) {
	s := open(t)
	s.Register(consoletest.Scraped(10))
	got := s.target("0000000000000003")
	require.Equal(t, "http://10.0.0.3:9100/metrics", got.URL)
	require.Equal(t, "- action: keep\n", got.Relabel)
	require.True(t, got.CanLook)
	require.Empty(t, got.Next)
	require.Equal(t, []inspect.Label{{Name: labelAddress, Value: "10.0.0.3:9100"}, {Name: "__param_token", Value: "[REDACTED]"}}, got.Discovered)
	s.Register(consoletest.Scraped(100))
	require.Equal(t, advice.ForReason("connection_refused"), s.target("0000000000000063").Next)
	status, _, _ := consoletest.Fault(t, s.view.Target, "", "", of("ffffffffffffffff"))
	require.Equal(t, http.StatusNotFound, status)
}

func TestHostileTargets(t *testing.T) {
	evil := []string{
		"<script>alert(1)</script>", "\u202e\u0644\u0627", strings.Repeat("x", 10_000), "a\nb\r\nc", `"},{"`, "\xff\xfe", "=HYPERLINK(1)", "+1+1", "@SUM(1)",
		"-2+3", "\tx", "-5",
	}
	var labels []inspect.Label
	for i, v := range evil {
		labels = append(labels, inspect.Label{Name: "__proto__" + string(rune('a'+i)), Value: v})
	}
	s := open(t)
	s.Register(inspect.Source{
		Kind: component.KindReceiver, ID: consoletest.ID("r"),
		Targets: func() inspect.Targets {
			var out inspect.Targets
			for _, v := range evil {
				out.Jobs = append(out.Jobs, inspect.Job{Name: v, Targets: []inspect.Target{{URL: v, State: inspect.Failing, LastError: v, Labels: consoletest.TargetLabels{Now: labels}}}})
			}
			return out
		},
	})
	list := s.list("")
	require.Len(t, list.Targets, len(evil))
	require.Len(t, list.Targets[0].Labels, len(evil))
	_, h, text := consoletest.Ask(t, s.view.List, "", "")
	require.Equal(t, "application/json", h.Get("Content-Type"))
	require.NotContains(t, text, "<script>", "harmless even to those who take it for a page")

	_, h, text = consoletest.Ask(t, s.view.List, "?format=csv", "")
	require.Equal(t, "text/csv; charset=utf-8", h.Get("Content-Type"))
	require.Equal(t, `attachment; filename="targets.csv"`, h.Get("Content-Disposition"))
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, len(evil)+1)
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && cell != "-5" {
				require.NotContains(t, "=+-@\t\r", cell[:1], "no formulas")
			}
		}
	}
}

// A list of ten thousand targets must stay fast. The goal is 200 ms for 95 of 100 requests; ten times as much is for
// the race detector. The test measures CPU time, because the machine is busy with other tests.
func TestTenThousandTargets(t *testing.T) {
	s := open(t)
	s.Register(consoletest.Scraped(10_000))
	for _, query := range []string{"", "?q=10.0.2.+north&sort=samples&order=desc&limit=1000"} {
		const requests = 20
		began := meter.CPUSeconds()
		for range requests {
			require.Equal(t, 10_000, s.list(query).Total)
		}
		each := (meter.CPUSeconds() - began) / requests
		t.Logf("%q: %.3f s of the CPU", query, each)
		require.Less(t, each, 2.0)
	}
}

func BenchmarkTenThousandTargets(b *testing.B) {
	w := consoletest.New(b)
	w.Register(consoletest.Scraped(10_000))
	v := New(w.Sources)
	for name, query := range map[string]string{"first page": "", "search": "?q=10.0.2.+north&sort=samples"} {
		b.Run(name, func(b *testing.B) {
			r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://localhost/api/v1/targets"+query, nil)
			require.NoError(b, err)
			for b.Loop() {
				list, err := v.List(r)
				require.NoError(b, err)
				require.Equal(b, 10_000, list.(targetListJSON).Total)
			}
		})
	}
}

// A page of a list is the same as if the whole list were sorted.
func TestAPageOfAListIsSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]entry, 500)
	for i := range all {
		all[i] = entry{target: &inspect.Target{ID: strconv.Itoa(i), Samples: r.IntN(50)}}
	}
	bySamples := func(a, b entry) int { return a.target.Samples - b.target.Samples } // many are equal
	want := slices.Clone(all)
	slices.SortStableFunc(want, bySamples)
	for _, n := range []int{0, 1, 2, 7, 50, 249, 250, 499, 500, 501, 10_000} {
		require.Equal(t, want[:min(n, len(want))], least(slices.Clone(all), n, bySamples), n)
	}
	require.Empty(t, least(nil, 10, bySamples))
}

func TestStatusesOfTargets(t *testing.T) {
	require.Equal(t, "404", statusOf(&inspect.Target{Reason: advice.ReasonStatus, LastError: "server returned HTTP status 404 Not Found"}))
	require.Empty(t, statusOf(&inspect.Target{Reason: "connection_refused", LastError: "HTTP status 404 Not Found"}))
}
