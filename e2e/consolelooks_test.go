// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-otel/godwit/e2e/console"
	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
)

// ugly is a configuration that is hard to lay out: two destinations of which one is down, very long names that cannot
// be broken, several pipelines and signals, an unknown extension.
const ugly = `
extensions: {console: {endpoint: %[1]s}}
receivers:
  otlp: {protocols: {grpc: {endpoint: %[2]s}}}
processors:
  cardinality:
    rules:
      - {name: flocks, match: {metric: sightings}, group_by: [metric], max_series: 100, on_exceed: [drop]}
      - {name: %[3]s, match: {metric: strange}, group_by: [metric], max_series: 10}
exporters:
  remotewrite: {endpoint: '', endpoints: [{endpoint: '%[4]s'}, {endpoint: 'http://%[5]s/%[3]s/api/v1/write'}]}
  remotewrite/%[3]s: {endpoint: '%[4]s'}
  debug: {}
service:
  extensions: [health_check, console]
  pipelines:
    metrics: {receivers: [fastprometheus], processors: [cardinality], exporters: [remotewrite]}
    metrics/%[3]s: {receivers: [otlp, fastprometheus], processors: [cardinality], exporters: [remotewrite/%[3]s]}
    logs: {receivers: [otlp], exporters: [debug]}
    traces: {receivers: [otlp], exporters: [debug]}
`

// Every view, in each look, of an agent whose configuration and targets are hard to lay out.
func TestConsoleLooks(t *testing.T) {
	t.Parallel()
	browser := console.Open(t)
	endless := strings.Repeat("goose", 20)
	well, delivering := targets.New(t, targets.Page{Body: consolePage()}), rwserver.New(t, rwserver.Options{CountOnly: true})
	silent, endpoint := freeport.Addr(t), freeport.Addr(t)
	startCollector(t,
		fmt.Sprintf(scraping, delivering.URL(), jobs(
			fmt.Sprintf("        - {job_name: strange, static_configs: [{targets: [%q], labels: {script: %q, backwards: %q, endless: %q}}]}\n", well.Addr(), script, backwards, endless),
			job(endless, well.Addr(), ""),
			job("silent", silent, ""),
			job("broken", targets.New(t, targets.Page{Status: 500, Body: "the goose is out to lunch\n"}).Addr(), ""),
			job("slow", targets.New(t, targets.Page{Body: "geese 1\n", Delay: 10 * time.Second}).Addr(), ""),
			job("login", targets.New(t, targets.Page{Body: "<html><title>Please log in</title></html>\n"}).Addr(), ""),
			job("nameless", endless+".invalid:9100", ""),
			job("unwanted", silent, ", relabel_configs: [{action: drop}]"),
		)),
		fmt.Sprintf(ugly, endpoint, freeport.Addr(t), endless, delivering.URL(), silent))
	home := "http://" + endpoint + "/"
	p := browser.Page(t, console.Wide, home, "")
	p.Reads("main", "2 of 7 targets healthy", "connection refused", "Breaker open")
	p.Go("#/targets?job=broken")
	p.Reads("tbody", "500")
	broken := console.Eval[string](p, `document.querySelector("tbody th a").hash`)
	p.Go("#/targets?job=strange")
	p.Reads("tbody", well.Addr())
	strange := console.Eval[string](p, `document.querySelector("tbody th a").hash`)
	p.Go(strange)
	p.Reads("main", "Before relabelling")
	debugged := console.Eval[string](p, `document.querySelector("a[href*=relabel]").hash`)
	processor := "&processor=cardinality+in+metrics"
	views := map[string]string{
		"overview": "#/overview", "targets": "#/targets", "failing": "#/targets?state=failing", "dropped": "#/targets?state=dropped", "nothing": "#/targets?q=no-such-goose",
		"broken": broken, "strange": strange, "relabel": debugged, "relabel-empty": "#/relabel",
		"cardinality": "#/cardinality", "labels": "#/cardinality?of=labels" + processor, "pairs": "#/cardinality?of=pairs&metric=strange" + processor,
		"groups": "#/cardinality?of=groups" + processor, "advice": "#/cardinality?advice=1" + processor,
		"metric": "#/cardinality/sightings?drop=ring_id" + processor, "metric-strange": "#/cardinality/strange?" + processor[1:],
		"delivery": "#/delivery", "live": "#/live/processor%2Fcardinality", "live-exporter": "#/live/exporter%2Fremotewrite",
		"configuration": "#/configuration", "lost": "#/nowhere",
	}
	for _, l := range looks() {
		p := browser.Page(t, l.look, home, "")
		for _, view := range slices.Sorted(maps.Keys(views)) {
			p.Go(views[view])
			p.Holds(fmt.Sprintf(`location.hash === %q && document.querySelector("#view h1") && !document.querySelector("#view[aria-busy]")`, views[view]))
			switch view {
			case "live":
				p.Reads("main", "points came")
			case "live-exporter":
				p.Reads("main", "Last batch")
			}
			p.Fits()
			p.Accessible()
			p.Picture("looks-" + view + "-" + l.name)
		}
	}
}
