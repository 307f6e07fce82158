// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godwit-otel/godwit/e2e/console"
	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/targets"
)

const strangersConsole = `
extensions: {console: {endpoint: %s}}
processors:
  cardinality:
    rules: [{name: shop, match: {metric: "shop_*"}, group_by: [metric], max_series: 300, on_exceed: [drop]}]
service:
  extensions: [health_check, console]
  pipelines: {metrics: {receivers: [fastprometheus], processors: [cardinality], exporters: [remotewrite]}}
`

// The first view tells someone new which targets fail and why, which label has too many values, and where data gets
// stuck.
func TestConsoleTellsStrangers(t *testing.T) {
	t.Parallel()
	browser := console.Open(t)
	well := targets.New(t, targets.Page{Body: "geese 42\n"})
	shop := targets.NewFunc(t, func(scrape int) targets.Page { // each visitor adds a series
		var b strings.Builder
		for i := range 100 * min(scrape+1, 50) {
			fmt.Fprintf(&b, "shop_requests_total{method=\"GET\",session=\"s%07d\"} 1\n", i*7919)
		}
		return targets.Page{Body: b.String()}
	})
	endpoint, dead, silent := freeport.Addr(t), freeport.Addr(t), freeport.Addr(t)
	broken := targets.New(t, targets.Page{Status: 500, Body: "the goose is out to lunch\n"})
	slow := targets.New(t, targets.Page{Body: "geese 1\n", Delay: 10 * time.Second})
	login := targets.New(t, targets.Page{Body: "<html><title>Please log in</title></html>\n"})
	startCollector(t,
		fmt.Sprintf(scraping, "http://"+dead+"/api/v1/write", jobs(
			job("node", well.Addr(), ""),
			job("shop", shop.Addr(), ""),
			job("silent", silent, ""),
			job("broken", broken.Addr(), ""),
			job("slow", slow.Addr(), ""),
			job("login", login.Addr(), ""),
			job("nameless", "goose..nest:9100", ""),
		)),
		fmt.Sprintf(strangersConsole, endpoint))
	home := "http://" + endpoint + "/"

	p := browser.Page(t, console.Wide, home, "")
	p.Reads("main",
		"2 of 7 targets healthy",
		"1 of 7 targets fails: connection refused", "1 of 7 targets fails: an HTTP error status: 500", "1 of 7 targets fails: no answer within scrape_timeout",
		"1 of 7 targets fails: the page cannot be read", "1 of 7 targets fails: the name is not found", "goose..nest",
		dead, "connection refused",
	)
	p.Click("details.rest summary") // problems beyond the six worst
	p.Reads("main", "label session of shop_requests_total")
	p.Go("#/targets?job=broken")
	p.Reads("tbody", broken.Addr())
	p.Click("tbody th a")
	p.Click(".live button")
	p.Reads(".live", "The target answers 500", "the goose is out to lunch")
	p.Picture("stranger-broken-wide")
	for _, l := range looks() {
		p := browser.Page(t, l.look, home, "")
		for _, view := range []string{"overview", "targets", "cardinality", "delivery"} {
			p.Go("#/" + view)
			p.Holds(fmt.Sprintf(`location.hash === "#/%s" && document.querySelector("#view h1") && !document.querySelector("#view[aria-busy]")`, view))
			p.Fits()
			p.Accessible()
			p.Picture("stranger-" + view + "-" + l.name)
		}
	}
}
