// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/console"
	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// perScrape is how many samples a target of these situations has, all of them gauges, so that samples are points.
const perScrape = 100

// shownOverview and shownDelivery are what the console's API says.
type (
	shownDestination struct {
		Name        string
		State       string
		Taken       int64
		Sent        int64
		Waiting     int64
		Requests    int64
		Retries     int64
		WireBytes   *int64   `json:"wire_bytes"`
		TakenRate   *float64 `json:"taken_per_second"`
		SentRate    *float64 `json:"sent_per_second"`
		LostRate    *float64 `json:"lost_per_second"`
		WaitingRate *float64 `json:"waiting_per_second"`
		Dropped     []struct {
			Reason string
			Count  int64
		}
	}

	shownOverview struct {
		Over    *float64 `json:"over_seconds"`
		Process struct {
			RSS *float64 `json:"rss_bytes"`
		}
		Totals struct {
			In           *float64 `json:"in_per_second"`
			Limited      *float64 `json:"limited_per_second"`
			Out          *float64 `json:"out_per_second"`
			Lost         *float64 `json:"dropped_per_second"`
			Destinations int
		}
		Latest   map[string]*float64
		Targets  struct{ Healthy, Failing, Unknown, Dropped int }
		Findings []struct{ Title, Severity string }
		Nodes    []struct {
			ID           string
			Rates        *struct{ In, Out, Limited, Dropped *float64 }
			Destinations []shownDestination
		}
	}

	shownDelivery struct {
		Exporters []struct {
			Exporter     string
			Destinations []shownDestination
		}
	}
)

func (d *shownDestination) lost() (n int64) {
	for _, drop := range d.Dropped {
		n += drop.Count
	}
	return n
}

func known(n *float64) float64 {
	if n == nil {
		return math.NaN()
	}
	return *n
}

// near allows for what is on its way between two components when they are asked: two scrapes.
func (o *shownOverview) near(a, b float64) bool {
	return math.Abs(a-b)*known(o.Over) <= 2.5*perScrape
}

// A situation is an agent with something to show. Each has two destinations to use, A and B.
type situation struct {
	name string
	// a and b are how the destinations answer.
	a, b rwserver.Step
	// config is laid over that of an agent that scrapes one target each second and sends to A. In it %[1]s and %[2]s are the
	// addresses of A and B, %[3]s one that is free and %[4]s a folder. Several are laid over each other.
	config string
	// holds is what the numbers must come to be. "" is well.
	holds func(o *shownOverview) string
	// reads is what the page must come to say.
	reads []string
}

// over stands between configurations.
const over = "\n---\n"

const (
	// tireless goes on trying.
	tireless     = "exporters: {remotewrite: {circuit_breaker: {consecutive_failures: 1000000}}}"
	twoEndpoints = "exporters: {remotewrite: {endpoint: '', endpoints: [{endpoint: '%[1]s'}, {endpoint: '%[2]s'}]}}"
	limitedTo    = `
processors: {cardinality: {mode: %s, rules: [{name: few, match: {metric: goose}, group_by: [metric], max_series: 40, on_exceed: [drop]}]}}
service: {pipelines: {metrics: {processors: [cardinality]}}}`
)

var (
	unwilling = rwserver.Step{Status: 503}
	rejecting = rwserver.Step{Status: 400}
)

func say(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// sums says what in, out, limited and lost have to come to, as parts of what comes in; nil is whatever.
func sums(out, limited, lost float64) func(*shownOverview) string {
	return func(o *shownOverview) string {
		t := &o.Totals
		in := known(t.In)
		return say(in > perScrape/2 && o.near(known(t.Out), out*in) && o.near(known(t.Limited), limited*in) && o.near(known(t.Lost), lost*in),
			"in %v, out %v, limited %v, lost %v", in, known(t.Out), known(t.Limited), known(t.Lost))
	}
}

func all(checks ...func(*shownOverview) string) func(*shownOverview) string {
	return func(o *shownOverview) string {
		var wrong []string
		for _, check := range checks {
			if what := check(o); what != "" {
				wrong = append(wrong, what)
			}
		}
		return strings.Join(wrong, "; ")
	}
}

// state says in which states destinations have to be.
func state(states ...string) func(*shownOverview) string {
	return func(o *shownOverview) string {
		var found []string
		for i := range o.Nodes {
			for _, d := range o.Nodes[i].Destinations {
				found = append(found, d.State)
			}
		}
		return say(strings.Join(found, " ") == strings.Join(states, " "), "destinations are %v and not %v", found, states)
	}
}

func finding(text string) func(*shownOverview) string {
	return func(o *shownOverview) string {
		for _, f := range o.Findings {
			if strings.Contains(f.Title, text) {
				return ""
			}
		}
		return fmt.Sprintf("no finding %q in %v", text, o.Findings)
	}
}

func both(o *shownOverview) string {
	return say(o.Totals.Destinations == 2, "%d destinations", o.Totals.Destinations)
}

func counted(healthy, failing, dropped int) func(*shownOverview) string {
	return func(o *shownOverview) string {
		t := o.Targets
		return say(t.Healthy == healthy && t.Failing == failing && t.Dropped == dropped, "targets %+v", t)
	}
}

var situations = []situation{
	{name: "all is well", holds: all(sums(1, 0, 0), state("ok"), counted(1, 0, 0)), reads: []string{"All is well", "Nothing is being lost"}},
	{name: "slow destination", a: rwserver.Step{Delay: 500 * time.Millisecond}, holds: all(sums(1, 0, 0), state("ok"))},
	{name: "down", a: unwilling, config: tireless, holds: all(sums(0, 0, 0), state("retrying")), reads: []string{"Retrying"}},
	{name: "breaker", a: unwilling, config: "exporters: {remotewrite: {circuit_breaker: {open_for: 1m}}}", holds: all(sums(0, 0, 0), state("breaker_open"), finding("circuit breaker is open")), reads: []string{"Breaker open"}},
	{name: "rejecting", a: rejecting, holds: all(sums(0, 0, 1), state("dropping"), finding("is losing data")), reads: []string{"are being lost", "Dropping data"}},
	{name: "throttled", a: rwserver.Step{Status: 429, Header: rwserver.RetryAfterSeconds(100)}, holds: all(sums(0, 0, 0), state("throttled")), reads: []string{"Throttled"}},
	{name: "two, both well", config: twoEndpoints, holds: all(sums(1, 0, 0), both, state("ok", "ok")), reads: []string{"by the slowest of 2 destinations"}},
	{name: "two, one down", b: unwilling, config: twoEndpoints + over + tireless, holds: all(sums(0, 0, 0), both, state("ok", "retrying"))},
	{name: "two, one rejecting", b: rejecting, config: twoEndpoints, holds: all(sums(0, 0, 1), both, state("ok", "dropping"))},
	{
		name:   "two that share the series",
		config: twoEndpoints + over + "exporters: {remotewrite: {shard_by_url: {enabled: true}}}",
		holds:  all(sums(1, 0, 0), both),
	},
	{
		name: "two exporters of one pipeline", b: rejecting,
		config: "exporters: {remotewrite/b: {endpoint: %[2]s, target_info: {enabled: false}, batch: {timeout: 100ms}}}\nservice: {pipelines: {metrics: {exporters: [remotewrite, remotewrite/b]}}}",
		holds:  all(sums(0, 0, 1), both),
	},
	{
		name:   "a receiver of our own on the way",
		config: "exporters: {remotewrite: {endpoint: 'http://%[3]s/api/v1/write'}, nop: {}}\nreceivers: {remotewrite: {endpoint: %[3]s}}\nservice: {pipelines: {metrics/own: {receivers: [remotewrite], exporters: [nop]}}}",
		holds:  sums(1, 0, 0),
	},
	{name: "queue full, the newest is dropped", a: unwilling, config: "exporters: {remotewrite: {queue: {size: 1200, on_full: drop_newest}}}", holds: all(sums(0, 0, 1), finding("Scrapes of fastprometheus are lost"))},
	{name: "queue full, the oldest is dropped", a: unwilling, config: "exporters: {remotewrite: {queue: {size: 1200, on_full: drop_oldest}}}", holds: all(sums(0, 0, 1), finding("is losing data"))},
	{name: "limited", config: fmt.Sprintf(limitedTo, "enforce"), holds: all(sums(0.4, 0.6, 0), finding("Rule few is at its limit: 40 of 40 series: label ring of goose")), reads: []string{"limited"}},
	{name: "limited, dry", config: fmt.Sprintf(limitedTo, "dry_run"), holds: sums(1, 0, 0)},
	{
		name: "memory is short", config: "processors: {memory_limiter: {check_interval: 100ms, limit_mib: 1}}\nservice: {pipelines: {metrics: {processors: [memory_limiter]}}}",
		holds: all(finding("Scrapes of fastprometheus are lost"), func(o *shownOverview) string {
			return say(known(o.Totals.Lost) > 0 && known(o.Totals.Out) == 0, "out %v, lost %v", known(o.Totals.Out), known(o.Totals.Lost))
		}), reads: []string{"are being lost"},
	},
	{
		name:   "targets fail",
		config: "receivers: {fastprometheus: {config: {scrape_configs: [{job_name: silent, static_configs: [{targets: ['%[3]s']}]}, {job_name: unwanted, static_configs: [{targets: ['%[3]s']}], relabel_configs: [{action: drop}]}]}}}",
		holds:  all(counted(0, 1, 1), finding("1 of 1 targets fails: connection refused")), reads: []string{"connection refused"},
	},
	{name: "rules drop samples", config: "exporters: {remotewrite: {write_relabel_configs: [{source_labels: [ring], regex: 'r[0-4].*', action: drop}]}}", holds: all(sums(0.5, 0, 0), state("ok"))},
	{name: "on disk", config: "extensions: {file_storage: {directory: %[4]s}}\nexporters: {remotewrite: {queue: {storage: file_storage}}}\nservice: {extensions: [health_check, console, file_storage]}", holds: all(sums(1, 0, 0), state("ok"))},
}

// In twenty situations the numbers add up, are those of the metrics, and the page says what they say.
func TestConsoleNumbers(t *testing.T) {
	t.Parallel()
	browser := console.Open(t)
	var page strings.Builder
	page.WriteString("# TYPE goose gauge\n")
	for i := range perScrape {
		fmt.Fprintf(&page, "goose{ring=\"r%02d\"} %d\n", i, i)
	}
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(t, browser, page.String())
		})
	}
}

func (s *situation) run(t *testing.T, browser *console.Browser, body string) {
	target := targets.New(t, targets.Page{Body: body})
	a, b := rwserver.New(t, rwserver.Options{CountOnly: true}), rwserver.New(t, rwserver.Options{CountOnly: true})
	a.Always(s.a)
	b.Always(s.b)
	endpoint, free := freeport.Addr(t), freeport.Addr(t)
	configs := []string{
		fmt.Sprintf(scraping, a.URL(), jobs(job("goose", target.Addr(), ""))),
		fmt.Sprintf("extensions: {console: {endpoint: %s}}\nservice: {extensions: [health_check, console]}", endpoint),
	}
	for part := range strings.SplitSeq(s.config, over) {
		if part == "" {
			continue
		}
		configs = append(configs, addressed(part, a.URL(), b.URL(), free, t.TempDir()))
	}
	c := startCollector(t, configs...)
	api := "http://" + endpoint + "/api/v1/"
	p := browser.Page(t, console.Wide, "http://"+endpoint+"/", "")
	wait.Until(t, time.Minute, func() (bool, string) {
		var o shownOverview
		require.NoError(t, json.Unmarshal(ask(t, api+"overview"), &o)) //nolint:musttag // names are those of the keys but for their case
		why := all(longEnough, s.holds, addsUp)(&o)
		return why == "", why
	})
	wait.Until(t, time.Minute, func() (bool, string) {
		why := sandwich(t, c, api)
		return why == "", why
	})
	p.Reads("main", s.reads...)
}

// addressed puts addresses into a configuration, by their numbers.
func addressed(config string, values ...string) string {
	for i, v := range values {
		config = strings.ReplaceAll(config, fmt.Sprintf("%%[%d]s", i+1), v)
	}
	return config
}

// longEnough is a stretch over which what near allows for is little: a quarter of what came.
func longEnough(o *shownOverview) string {
	return say(known(o.Over) >= 9, "rates are over %v s", known(o.Over))
}

// addsUp checks the balance of each destination, and that the last point of a chart is the number above it.
func addsUp(o *shownOverview) string {
	for i := range o.Nodes {
		for _, d := range o.Nodes[i].Destinations {
			if missing := d.Taken - d.Sent - d.lost() - d.Waiting; missing < 0 || missing > perScrape {
				return fmt.Sprintf("%s: %d taken are not %d sent + %d lost + %d waiting", d.Name, d.Taken, d.Sent, d.lost(), d.Waiting)
			}
			if taken, rest := known(d.TakenRate), known(d.SentRate)+known(d.LostRate)+known(d.WaitingRate); !o.near(taken, rest) {
				return fmt.Sprintf("%s: %v/s taken are not %v/s", d.Name, taken, rest)
			}
		}
	}
	for name, number := range map[string]*float64{"in": o.Totals.In, "out": o.Totals.Out, "limited": o.Totals.Limited, "dropped": o.Totals.Lost, "rss": o.Process.RSS} {
		if last := o.Latest[name]; (last == nil) != (number == nil) || last != nil && *last != *number {
			return fmt.Sprintf("%s is %v, and %v in its chart", name, known(number), known(last))
		}
	}
	return ""
}

// sandwich asks for the metrics before and after the console: what it counts is between the two.
func sandwich(t *testing.T, c *collector, api string) string {
	t.Helper()
	before := page(t, c.telemetry)
	var d shownDelivery
	require.NoError(t, json.Unmarshal(ask(t, api+"delivery"), &d)) //nolint:musttag // as above
	after := page(t, c.telemetry)
	var sent, lost, requests, retries, wire float64
	for i := range d.Exporters {
		for _, to := range d.Exporters[i].Destinations {
			sent, lost = sent+float64(to.Sent), lost+float64(to.lost())
			requests, retries, wire = requests+float64(to.Requests), retries+float64(to.Retries), wire+float64(*to.WireBytes)
		}
	}
	for name, shown := range map[string]float64{
		"otelcol_exporter_sent_metric_points":        sent,
		"otelcol_exporter_send_failed_metric_points": lost,
		"otelcol_exporter_remotewrite_requests":      requests,
		"otelcol_exporter_remotewrite_retries":       retries,
		"otelcol_exporter_remotewrite_wire_bytes":    wire,
	} {
		least, most := metric(t, before, name), metric(t, after, name)
		if shown < least || shown > most {
			return fmt.Sprintf("%s was %v, then the console said %v, then it was %v", name, least, shown, most)
		}
	}
	return ""
}
