// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/console"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
)

// A situation is an agent in some state that the console must show. Two destinations, A and B, are available.
type situation struct {
	name string
	// distribution is the one to run, by default the agent.
	distribution string
	// a and b are the destinations' responses.
	a, b rwserver.Step
	// config is merged into the configuration of an agent that scrapes a target every second and sends to A. %[1]s and
	// %[2]s are the addresses of A and B, %[3]s and %[6]s are free addresses, %[4]s is a directory and %[5]s the
	// target. over separates several configurations, which are merged in order.
	config string
	// holds returns why the numbers are not as expected, "" if they are.
	holds func(o *shownOverview) string
	// reads are texts that the page must show.
	reads []string
	// then changes the situation; thenHolds is the condition after that.
	then      func(t *testing.T, s *staged)
	thenHolds func(o *shownOverview) string
}

// staged is a running situation.
type staged struct {
	*collector

	target *targets.Target
	a, b   *rwserver.Server
	api    string
	page   *console.Page
}

// over separates configurations.
const over = "\n---\n"

const (
	// tireless keeps retrying: the circuit breaker does not open.
	tireless     = "exporters: {remotewrite: {circuit_breaker: {consecutive_failures: 1000000}}}"
	twoEndpoints = "exporters: {remotewrite: {endpoint: '', endpoints: [{endpoint: '%[1]s'}, {endpoint: '%[2]s'}]}}"
	limitedTo    = `
processors: {cardinality: {mode: %s, rules: [{name: few, match: {metric: goose}, group_by: [metric], max_series: 40, on_exceed: [drop]}]}}
service: {pipelines: {metrics: {processors: [cardinality]}}}`
)

// secondJob adds a second receiver that scrapes the target.
const secondJob = "receivers: {prometheus: {config: {global: {scrape_interval: 1s, scrape_timeout: 1s}, scrape_configs: [{job_name: second, static_configs: [{targets: ['%[5]s']}]}]}}}"

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

// sums expects out, limited and lost to be these shares of the samples that come in.
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

// state expects the destinations to be in these states, in order.
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

func destinations(n int) func(*shownOverview) string {
	return func(o *shownOverview) string {
		return say(o.Totals.Destinations == n, "%d destinations and not %d", o.Totals.Destinations, n)
	}
}

// nothing expects neither loss nor backlog: nearly all that was taken has been acknowledged.
func nothing(o *shownOverview) string {
	for i := range o.Nodes {
		for _, d := range o.Nodes[i].Destinations {
			if d.lost() != 0 || d.Waiting > 2*perScrape || d.Taken == 0 || d.Sent < d.Taken-2*perScrape {
				return fmt.Sprintf("%s: %d taken, %d sent, %d lost, %d waiting", d.Name, d.Taken, d.Sent, d.lost(), d.Waiting)
			}
		}
	}
	return ""
}

// waits expects each backlog to have at least n items.
func waits(n int64) func(*shownOverview) string {
	return func(o *shownOverview) string {
		for i := range o.Nodes {
			for _, d := range o.Nodes[i].Destinations {
				if d.Waiting < n {
					return fmt.Sprintf("%d are waiting", d.Waiting)
				}
			}
		}
		return ""
	}
}

// comes expects n samples per second to come in.
func comes(n float64) func(*shownOverview) string {
	return func(o *shownOverview) string {
		return say(o.near(known(o.Totals.In), n), "%v come in and not %v", known(o.Totals.In), n)
	}
}

// apart expects two receivers with one healthy target each.
func apart(o *shownOverview) string {
	n := 0
	for i := range o.Nodes {
		if own := o.Nodes[i].Targets; own != nil {
			n++
			if own.Healthy != 1 {
				return fmt.Sprintf("%s has %+v", o.Nodes[i].ID, *own)
			}
		}
	}
	return say(n == 2, "%d receivers scrape", n)
}

// reloaded expects that the configuration was loaded while the process ran.
func reloaded(o *shownOverview) string {
	return say(o.Loaded.Sub(o.Started) > 5*time.Second, "loaded %v, started %v", o.Loaded, o.Started)
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
	{name: "two, both rejecting", a: rejecting, b: rejecting, config: twoEndpoints, holds: all(sums(0, 0, 1), both, state("dropping", "dropping"))},
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
	{name: "disk full, the oldest is dropped", a: unwilling, config: "exporters: {remotewrite: {queue: {directory: '%[4]s', size: 4000, on_full: drop_oldest}}}\n---\n" + tireless, holds: all(sums(0, 0, 1), finding("is losing data")), reads: []string{"are being lost"}},
	{name: "disk full, the newest is dropped", a: unwilling, config: "exporters: {remotewrite: {queue: {directory: '%[4]s', size: 4000, on_full: drop_newest}}}\n---\n" + tireless, holds: all(sums(0, 0, 1), finding("Scrapes of fastprometheus are lost"))},
	{
		name: "after an outage", a: unwilling, config: tireless, holds: all(sums(0, 0, 0), waits(5*perScrape)), reads: []string{"Retrying"},
		then:      func(_ *testing.T, s *staged) { s.a.Always(rwserver.Step{}) },
		thenHolds: all(sums(1, 0, 0), nothing, state("ok")),
	},
	{
		name: "loaded again", holds: all(sums(1, 0, 0), comes(ofAScrape)),
		then: func(_ *testing.T, s *staged) {
			s.page.Forgive()
			s.Signal(syscall.SIGHUP)
			s.WaitLog(firstWords, "Received signal from OS")
		},
		thenHolds: all(reloaded, sums(1, 0, 0), comes(ofAScrape), nothing),
	},
	{
		name: "started again", config: "exporters: {remotewrite: {queue: {directory: '%[4]s'}}}", holds: all(sums(1, 0, 0), comes(ofAScrape)),
		then: func(t *testing.T, s *staged) {
			s.page.Forgive()
			require.Zero(t, s.Stop(syscall.SIGINT, drainTime))
			s.Restart()
			s.ready()
		},
		thenHolds: all(sums(1, 0, 0), comes(ofAScrape), nothing),
	},
	{
		name:   "two pipelines of a receiver",
		config: "exporters: {remotewrite/b: {endpoint: %[2]s, target_info: {enabled: false}, batch: {timeout: 100ms}}}\nservice: {pipelines: {metrics/b: {receivers: [fastprometheus], exporters: [remotewrite/b]}}}",
		holds:  all(sums(1, 0, 0), comes(ofAScrape), both),
	},
	{
		name: "two pipelines of a receiver, one is down", b: unwilling,
		config: "exporters: {remotewrite/b: {endpoint: %[2]s, target_info: {enabled: false}, batch: {timeout: 100ms}, circuit_breaker: {consecutive_failures: 1000000}}}\nservice: {pipelines: {metrics/b: {receivers: [fastprometheus], exporters: [remotewrite/b]}}}",
		holds:  all(sums(0, 0, 0), both, state("ok", "retrying")),
	},
	{
		name: "two receivers that scrape",
		config: "receivers: {prometheus: {config: {global: {scrape_interval: 1s, scrape_timeout: 1s}, scrape_configs: [{job_name: second, static_configs: [{targets: ['%[5]s']}]}]}}}\n" +
			"exporters: {remotewrite/b: {endpoint: %[2]s, target_info: {enabled: false}, batch: {timeout: 100ms}}}\nservice: {pipelines: {metrics/b: {receivers: [prometheus], exporters: [remotewrite/b]}}}",
		holds: all(sums(1, 0, 0), comes(2*ofAScrape), both, counted(2, 0, 0), apart),
	},
	{
		name: "by a stream and a receiver of our own", distribution: "godwit",
		config: "exporters: {otlpstream: {endpoint: %[3]s, tls: {insecure: true}, sending_queue: {batch: {flush_timeout: 50ms}}}}\nreceivers: {otlpstream: {protocols: {grpc: {endpoint: %[3]s}}}}\n" +
			"service: {pipelines: {metrics: {exporters: [otlpstream]}, metrics/own: {receivers: [otlpstream], exporters: [remotewrite]}}}",
		holds: all(sums(1, 0, 0), comes(ofAScrape), state("ok", "ok")), reads: []string{"otlpstream", "remotewrite"},
	},
	{
		name: "by a stream, and the destination rejects", a: rejecting, distribution: "godwit",
		config: "exporters: {otlpstream: {endpoint: %[3]s, tls: {insecure: true}, sending_queue: {batch: {flush_timeout: 50ms}}}}\nreceivers: {otlpstream: {protocols: {grpc: {endpoint: %[3]s}}}}\n" +
			"service: {pipelines: {metrics: {exporters: [otlpstream]}, metrics/own: {receivers: [otlpstream], exporters: [remotewrite]}}}",
		holds: all(sums(0, 0, 1), comes(ofAScrape)), reads: []string{"are being lost"},
	},
	{
		name:   "limited, and added up",
		config: strings.Replace(fmt.Sprintf(limitedTo, "enforce"), "[drop]", "[overflow]", 1), holds: all(func(o *shownOverview) string {
			t := &o.Totals // aggregated series are limited, and continue as one series
			return say(o.near(known(t.Limited), 60) && known(t.Lost) == 0 && o.near(known(t.Out), 46), "out %v, limited %v, lost %v", known(t.Out), known(t.Limited), known(t.Lost))
		}, comes(ofAScrape), finding("Rule few is at its limit")),
	},
	{
		name:   "hostile labels",
		config: "receivers: {fastprometheus: {config: {scrape_configs: [{job_name: strange, static_configs: [{targets: ['%[5]s'], labels: {markup: '<script>document.title=1</script>', reversed: \"\\u202Egpj.exe\"}}]}]}}}",
		holds:  all(sums(1, 0, 0), comes(ofAScrape), counted(1, 0, 0)),
	},
	{
		name:   "two receivers, one exporter",
		config: secondJob + over + "service: {pipelines: {metrics/b: {receivers: [prometheus], exporters: [remotewrite]}}}",
		holds:  all(sums(1, 0, 0), comes(2*ofAScrape), counted(2, 0, 0), apart, destinations(1), state("ok")),
	},
	{
		name: "three exporters of one pipeline, one rejects", b: rejecting,
		config: "exporters: {remotewrite/b: {endpoint: %[1]s, target_info: {enabled: false}, batch: {timeout: 100ms}}, remotewrite/c: {endpoint: %[2]s, target_info: {enabled: false}, batch: {timeout: 100ms}}}\n" +
			"service: {pipelines: {metrics: {exporters: [remotewrite, remotewrite/b, remotewrite/c]}}}",
		holds: all(sums(0, 0, 1), comes(ofAScrape), destinations(3), state("ok", "ok", "dropping")), reads: []string{"by the slowest of 3 destinations"},
	},
	{
		name: "through a connector", distribution: "godwit",
		config: "connectors: {forward: {}}\nservice: {pipelines: {metrics: {exporters: [forward]}, metrics/out: {receivers: [forward], exporters: [remotewrite]}}}",
		holds:  all(sums(1, 0, 0), comes(ofAScrape), destinations(1), state("ok")),
	},
	{
		name: "beside a connector, behind which it is down", distribution: "godwit", b: unwilling,
		config: "connectors: {forward: {}}\nexporters: {remotewrite/b: {endpoint: %[2]s, target_info: {enabled: false}, batch: {timeout: 100ms}, circuit_breaker: {consecutive_failures: 1000000}}}\n" +
			"service: {pipelines: {metrics: {exporters: [remotewrite, forward]}, metrics/out: {receivers: [forward], exporters: [remotewrite/b]}}}",
		holds: all(sums(0, 0, 0), comes(ofAScrape), both, state("ok", "retrying")),
	},
	{
		name: "a receiver without targets",
		config: "receivers: {prometheus: {config: {scrape_configs: [{job_name: nobody, static_configs: []}]}}}\n" +
			"service: {pipelines: {metrics/b: {receivers: [prometheus], exporters: [remotewrite]}}}",
		holds: all(sums(1, 0, 0), comes(ofAScrape), counted(1, 0, 0), state("ok")),
	},
	{
		name: "a filter on the way", distribution: "godwit",
		config: "processors: {filter: {metrics: {datapoint: ['IsMatch(attributes[\"ring\"], \"r[0-4].\")']}}}\nservice: {pipelines: {metrics: {processors: [filter]}}}",
		holds:  all(sums(0.5, 0, 0), comes(ofAScrape), state("ok")),
	},
	{
		name:   "a batch on the way",
		config: "processors: {batch: {timeout: 200ms}}\nservice: {pipelines: {metrics: {processors: [batch]}}}",
		holds:  all(sums(1, 0, 0), comes(ofAScrape), state("ok"), nothing),
	},
	{
		name: "killed, and started again", config: "exporters: {remotewrite: {queue: {directory: '%[4]s'}}}", holds: all(sums(1, 0, 0), comes(ofAScrape)),
		then: func(_ *testing.T, s *staged) {
			s.page.Forgive()
			s.Kill()
			s.Restart()
			s.ready()
		},
		thenHolds: all(sums(1, 0, 0), comes(ofAScrape), nothing),
	},
	{
		name: "limits in two pipelines of a receiver",
		config: fmt.Sprintf(limitedTo, "enforce") + over +
			"exporters: {remotewrite/b: {endpoint: %[2]s, target_info: {enabled: false}, batch: {timeout: 100ms}}}\n" +
			"service: {pipelines: {metrics/b: {receivers: [fastprometheus], processors: [cardinality], exporters: [remotewrite/b]}}}",
		holds: all(sums(0.4, 0.6, 0), comes(ofAScrape), both, state("ok", "ok"), finding("Rule few is at its limit: 40 of 40 series: label ring of goose")),
	},
	{
		name: "a tenant over its limit",
		config: "processors: {cardinality: {mode: enforce, tenant: {from: ['resource:service.name']}, rules: [{name: each, group_by: [tenant], max_series: 50, on_exceed: [drop]}]}}\n" +
			"service: {pipelines: {metrics: {processors: [cardinality]}}}",
		holds: all(sums(50.0/ofAScrape, 55.0/ofAScrape, 0), comes(ofAScrape), state("ok"), finding("Rule each is at its limit: 50 of 50 series")), reads: []string{"limited"},
	},
	{
		name: "a wrong password", a: rwserver.Step{Status: 401},
		holds: all(sums(0, 0, 0), comes(ofAScrape), state("breaker_open"), finding("circuit breaker is open")), reads: []string{"401"},
	},
	{
		name: "by a stream and by remote write at once", distribution: "godwit",
		config: secondJob + over +
			"exporters: {otlpstream: {endpoint: %[3]s, tls: {insecure: true}, sending_queue: {batch: {flush_timeout: 50ms}}}, remotewrite/own: {endpoint: 'http://%[6]s/api/v1/write', target_info: {enabled: false}, batch: {timeout: 100ms}}}\n" +
			"receivers: {otlpstream: {protocols: {grpc: {endpoint: %[3]s}}}, remotewrite: {endpoint: %[6]s}}\n" +
			"service: {pipelines: {metrics: {exporters: [otlpstream]}, metrics/b: {receivers: [prometheus], exporters: [remotewrite/own]}, metrics/own: {receivers: [otlpstream, remotewrite], exporters: [remotewrite]}}}",
		holds: all(sums(1, 0, 0), comes(2*ofAScrape), counted(2, 0, 0), apart, state("ok", "ok", "ok")), reads: []string{"otlpstream", "remotewrite/own"},
	},
	{
		name: "a target begins to fail", holds: all(sums(1, 0, 0), comes(ofAScrape), counted(1, 0, 0)),
		then: func(_ *testing.T, s *staged) { s.target.Then(targets.Page{Status: 500}) },
		thenHolds: all(counted(0, 1, 0), finding("1 of 1 targets fails: an HTTP error status: 500"), comes(5), func(o *shownOverview) string {
			return say(known(o.Totals.Lost) == 0 && known(o.Totals.Limited) == 0, "lost %v, limited %v", known(o.Totals.Lost), known(o.Totals.Limited))
		}),
	},
}
