// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/history"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
)

const killedConfig = `
receivers: {otlpstream: {protocols: {grpc: {endpoint: %q}}}}
processors:
  cardinality:
    storage: file_storage
    overflow: {interval: 1s}
    rules:
      - {name: flocks, match: {metric: "not:requests"}, aggregate: {by: [flock], interval: 1s}}
      - {name: pods, match: {metric: requests}, max_series: 5, on_exceed: [overflow]}
exporters: {otlp_grpc: {endpoint: %q, tls: {insecure: true}, sending_queue: {enabled: false}}}
extensions: {file_storage: {directory: %q}}
service:
  extensions: [health_check, file_storage]
  pipelines: {metrics: {receivers: [otlpstream], processors: [cardinality], exporters: [otlp_grpc]}}
`

// grow returns points of all birds that live, as a scrape does, and of one that is new.
func (f *flock) grow(a *answered) (points []goosePoint) {
	now := a.tick()
	f.rings++
	f.birds = append(f.birds, &goose{ring: strconv.Itoa(f.rings), since: now, last: now})
	for _, b := range f.birds {
		if !b.ended {
			b.honks += f.random.Int64N(1000)
			points = append(points, b.at(a.tick(), false))
		}
	}
	return points
}

// What TestAggregatesAreWhatPromQLSays shows, also when the gateway is killed or restarted, in the middle of an interval,
// and the same for overflow series. Inputs begin, end, are silent and are reset; only what ends or is reset within an
// interval that a kill cuts short is excepted, so nothing does then.
func TestSumsAreWhatPromQLSaysOverKills(t *testing.T) {
	t.Parallel()
	const flocks, pods = 20, 30
	addr, destination := freeport.Addr(t), otlpserver.New(t, otlpserver.Options{})
	g := startDistribution(t, "godwit-gateway", fmt.Sprintf(killedConfig, addr, destination.GRPCAddr(), t.TempDir()))
	a := &answered{t: t, gateway: g, client: pmetricotlp.NewGRPCClient(dial(t, addr)), destination: destination, past: history.New(t), now: time.Now()}
	var all []*flock
	for i := range flocks {
		all = append(all, &flock{name: strconv.Itoa(i), random: rand.New(rand.NewPCG(uint64(i), 48))})
	}
	var names []string
	for i := range pods {
		names = append(names, strconv.Itoa(i))
	}
	began, requests := a.tick(), int64(0)
	scrape := func(of func(f *flock) pmetric.Metrics) {
		t.Helper()
		for _, f := range all {
			a.say(of(f))
		}
		requests += 7
		a.say(a.pods(names, began, a.tick(), requests, false))
	}
	grown := func(f *flock) pmetric.Metrics { return f.metrics(f.grow(a)) }
	agree := func() {
		t.Helper()
		a.agree(`sum by (flock) (increase(raw_honks[1h] anchored))`, `increase(made_honks[1h] anchored)`, "flock")
		a.agree(`sum by (flock) (raw_height)`, `made_height`, "flock")
		a.agree(`sum(increase(raw_requests[1h] anchored))`, `sum(increase(made_requests[1h] anchored))`, "")
	}
	seen := map[string]int{}
	for round := range 6 {
		scrape(func(f *flock) pmetric.Metrics {
			points, _ := f.live(a, seen)
			return f.metrics(points)
		})
		agree()
		scrape(grown)
		if round%3 == 2 {
			require.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
		} else {
			g.Kill()
		}
		g.Restart()
		g.ready()
		a.client = pmetricotlp.NewGRPCClient(dial(t, addr))
		scrape(grown)
		agree()
	}
	for _, what := range []string{"end", "silence", "restart", "reset", "return"} {
		assert.Positive(t, seen[what], what)
	}
	a.take()
	assert.Len(t, a.past.Query(`made_requests{otel_metric_overflow=""}`), 5, "the rest is added up")
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
}
