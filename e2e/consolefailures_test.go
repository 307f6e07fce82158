// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/godwit-otel/godwit/e2e/console"
	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// Targets fail in eleven ways. The console counts each way, the counts add up to the failing targets, and the metrics
// agree.
func TestConsoleCountsFailures(t *testing.T) {
	t.Parallel()
	browser := console.Open(t)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler()) // its certificate is from an unknown authority
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)           // it logs the handshakes that the agent aborts
	secure.StartTLS()
	t.Cleanup(secure.Close)
	at := func(page targets.Page) string { return targets.New(t, page).Addr() }
	ways := []struct {
		reason, keys string
		addr         string
		n            int
	}{
		{"connection_refused", "", freeport.Addr(t), 3},
		{"connection_reset", "", at(targets.Page{Fault: targets.Reset}), 1},
		{"timeout", "", at(targets.Page{Fault: targets.Hang}), 2},
		{"body_size", ", body_size_limit: 1KB", at(targets.Page{Body: strings.Repeat(goodPage, 1000)}), 1},
		{"encoding", "", at(targets.Page{Body: goodPage, Encodings: []string{}, Header: http.Header{"Content-Encoding": {"br"}}}), 1},
		{"parse", "", at(targets.Page{Body: "<!doctype html><p>Geese", ContentType: "text/html"}), 1},
		{"status", "", at(targets.Page{Status: http.StatusInternalServerError}), 1},
		{"status", "", at(targets.Page{Status: http.StatusServiceUnavailable}), 1},
		{"limit", ", sample_limit: 1", at(targets.Page{Body: goodPage}), 1},
		{"protocol", "", at(targets.Page{Status: http.StatusFound, Header: http.Header{"Location": {"/metrics"}}}), 1},
		{"dns", "", "goose..nest:9100", 1},
		{"tls", ", scheme: https", secure.Listener.Addr().String(), 1},
	}
	want, failing, total := map[string]int{}, 0, 1
	lines := []string{job("good", at(targets.Page{Body: goodPage}), "")}
	for i, way := range ways {
		for k := range way.n {
			lines = append(lines, job(fmt.Sprintf("%s-%d-%d", way.reason, i, k), way.addr, way.keys))
		}
		want[way.reason] += way.n
		failing += way.n
	}
	total += failing
	endpoint := freeport.Addr(t)
	c := startCollector(t, fmt.Sprintf(scraping, rwserver.New(t, rwserver.Options{CountOnly: true}).URL(), jobs(lines...)),
		fmt.Sprintf("extensions: {console: {endpoint: %s}}\nservice: {extensions: [health_check, console]}", endpoint))
	api := "http://" + endpoint + "/api/v1/"
	wait.Until(t, time.Minute, func() (bool, string) {
		var list shownTargets
		if err := look(api+"targets?limit=1", &list); err != nil {
			return false, err.Error()
		}
		sum := 0
		for _, e := range list.Errors {
			sum += e.Count
			if e.Count != want[e.Reason] {
				return false, fmt.Sprintf("%d of %s and not %d: %+v", e.Count, e.Reason, want[e.Reason], list)
			}
		}
		return sum == failing && list.Counts.Failing == failing && list.Counts.Healthy == 1 && list.Total == total, fmt.Sprintf("%d, and %+v", sum, list)
	})
	wait.Until(t, time.Minute, func() (bool, string) {
		why := sandwich(t, c, api)
		return why == "", why
	})
	p := browser.Page(t, console.Wide, "http://"+endpoint+"/", "")
	p.Do(listens)
	p.Reads("main", fmt.Sprintf("1 of %d targets healthy", total), fmt.Sprintf("3 of %d targets fail: connection refused", total), fmt.Sprintf("2 of %d targets fail: an HTTP error status: 500, 503", total))
	s := &staged{collector: c, api: api, page: p}
	s.shows(t)
	for _, l := range looks() {
		p := browser.Page(t, l.look, "http://"+endpoint+"/", "#/targets")
		p.Reads("main", "Why targets fail")
		p.Fits()
		p.Picture("targets-failures-" + l.name)
	}
}
