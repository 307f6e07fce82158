// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const overridesConfig = `
receivers: {otlpstream: {protocols: {grpc: {endpoint: %q, include_metadata: true}}}}
processors:
  cardinality:
    tenant: {from: ["metadata:x-flock"]}
    overrides: {large: {max_series: 40}, "*": {max_series: 10}}
    defaults: {on_exceed: [drop]}
    storage: file_storage
    snapshot_interval: 1s
exporters: {otlp_grpc: {endpoint: %q, tls: {insecure: true}, sending_queue: {enabled: false}}}
extensions: {file_storage: {directory: %q}}
service:
  extensions: [health_check, file_storage]
  pipelines: {metrics: {receivers: [otlpstream], processors: [cardinality], exporters: [otlp_grpc]}}
`

// Each tenant keeps its own limit and its own series after a kill.
func TestTenantsHaveTheirOwnLimitsAfterAKill(t *testing.T) {
	t.Parallel()
	gateway, data := newWay(t), t.TempDir()
	g := startDistribution(t, "godwit-gateway", fmt.Sprintf(overridesConfig, gateway.addr, gateway.destination.GRPCAddr(), data))
	arrive := func(flock string, first int) int {
		t.Helper()
		return gateway.arrive(t, flock, first, 50)
	}
	limits := map[string]int{"large": 40, "one": 10, "other": 10}
	for flock, limit := range limits {
		require.Equal(t, limit, arrive(flock, 0), flock)
	}
	for range 2 {
		killSaved(t, g, data)
		for flock, limit := range limits {
			require.Zero(t, arrive(flock, 1000), "newcomers of %s after a kill", flock)
			require.Equal(t, limit, arrive(flock, 0), "who was there before, of %s", flock)
		}
		require.Equal(t, limits["one"], arrive("new", 0), "a tenant that was not there before")
		limits["new"] = limits["one"]
	}
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
}

const reloadedConfig = `
receivers: {otlpstream: {protocols: {grpc: {endpoint: %q, include_metadata: true}}}}
processors:
  cardinality:
    tenant: {from: ["metadata:x-flock"]}
    defaults: {on_exceed: [drop]}
    rules_file: %q
    rules_poll_interval: 1s
exporters: {otlp_grpc: {endpoint: %q, tls: {insecure: true}, sending_queue: {enabled: false}}}
service: {pipelines: {metrics: {receivers: [otlpstream], processors: [cardinality], exporters: [otlp_grpc]}}}
`

// The limits of tenants change while the process runs, as the rules file says. No admitted series is removed, and an
// invalid file changes nothing.
func TestTenantsHaveWhatAFileSays(t *testing.T) {
	t.Parallel()
	gateway, file := newWay(t), filepath.Join(t.TempDir(), "rules.yaml")
	say := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	say(`overrides: {large: {max_series: 40}, "*": {max_series: 10}}`)
	g := startDistribution(t, "godwit-gateway", fmt.Sprintf(reloadedConfig, gateway.addr, file, gateway.destination.GRPCAddr()))
	applied := 0.
	inForce := func() {
		t.Helper()
		applied++
		wait.Until(t, delivery, func() (bool, string) {
			n := g.metric(t, "otelcol_processor_cardinality_rules_applied")
			return n == applied, fmt.Sprintf("rules were applied %v times", n)
		})
	}
	requireArrive := func(flock string, first, want int) {
		t.Helper()
		require.Equal(t, want, gateway.arrive(t, flock, first, 50), flock)
	}
	requireArrive("large", 0, 40)
	requireArrive("one", 0, 10)

	say(`overrides: {large: {max_series: 45}, one: {max_series: 0}, "*": {max_series: 3}}`)
	inForce()
	requireArrive("large", 0, 45)
	requireArrive("one", 0, 50)
	requireArrive("other", 0, 3)

	say(`overrides: {large: {max_series: 20}}`)
	inForce()
	requireArrive("large", 0, 45)
	requireArrive("large", 1000, 0)
	requireArrive("other", 0, 50)

	say(`overrides: {large: {max_series: many}}`)
	wait.Until(t, delivery, func() (bool, string) {
		return g.metric(t, "otelcol_processor_cardinality_rules_bad") == 1, "the file is not known to be bad"
	})
	requireArrive("large", 0, 45)
	requireArrive("large", 1000, 0)
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
}

const sharedConfig = `
receivers:
  otlpstream/a: {protocols: {grpc: {endpoint: %q}}}
  otlpstream/b: {protocols: {grpc: {endpoint: %q}}}
processors:
  cardinality:
    shared: true
    rules: [{name: places, max_series: %d, on_exceed: [drop]}]
    storage: file_storage
    snapshot_interval: 1s
exporters:
  otlp_grpc/a: {endpoint: %q, tls: {insecure: true}, sending_queue: {enabled: false}}
  otlp_grpc/b: {endpoint: %q, tls: {insecure: true}, sending_queue: {enabled: false}}
extensions: {file_storage: {directory: %q}}
service:
  extensions: [health_check, file_storage]
  pipelines:
    metrics/a: {receivers: [otlpstream/a], processors: [cardinality], exporters: [otlp_grpc/a]}
    metrics/b: {receivers: [otlpstream/b], processors: [cardinality], exporters: [otlp_grpc/b]}
`

// A shared processor has one limit for both of its pipelines. After a kill, each pipeline keeps its series of it.
func TestPipelinesShareALimitAfterAKill(t *testing.T) {
	t.Parallel()
	const places, ofA = 50, 30
	data := t.TempDir()
	a, b := newWay(t), newWay(t)
	g := startDistribution(t, "godwit-gateway", fmt.Sprintf(sharedConfig, a.addr, b.addr, places,
		a.destination.GRPCAddr(), b.destination.GRPCAddr(), data))
	arrive := func(w way, first int) int {
		t.Helper()
		return w.arrive(t, "", first, ofA)
	}
	require.Equal(t, ofA, arrive(a, 0))
	require.Equal(t, places-ofA, arrive(b, 0), "the same series, in another pipeline")
	for range 2 {
		killSaved(t, g, data)
		require.Zero(t, arrive(b, 1000), "newcomers after a kill")
		require.Zero(t, arrive(a, 1000), "newcomers after a kill")
		require.Equal(t, places-ofA, arrive(b, 0))
		require.Equal(t, ofA, arrive(a, 0))
	}
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
}

const metadataKeysConfig = `
receivers: {otlpstream: {protocols: {grpc: {endpoint: %q, include_metadata: true}}}}
processors:
  cardinality:
    tenant: {metadata_keys: [x-flock]}
    rules: [{name: none, match: {metric: steps}, label_limits: {ring: 0}, on_exceed: [overflow]}]
    overflow: {interval: 1s}
    storage: file_storage
    snapshot_interval: 1s
exporters:
  otlp_grpc:
    endpoint: %q
    tls: {insecure: true}
    auth: {authenticator: headers_setter}
    sending_queue: {enabled: false}
extensions:
  file_storage: {directory: %q}
  headers_setter: {headers: [{key: x-flock, from_context: x-flock}]}
service:
  extensions: [health_check, file_storage, headers_setter]
  pipelines: {metrics: {receivers: [otlpstream], processors: [cardinality], exporters: [otlp_grpc]}}
`

// stepsOf returns n counters of the same value.
func stepsOf(n int, begun time.Time, each int64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("steps")
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for i := range n {
		p := sum.DataPoints().AppendEmpty()
		p.SetStartTimestamp(pcommon.NewTimestampFromTime(begun))
		p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		p.SetIntValue(each)
		p.Attributes().PutInt("ring", int64(i))
	}
	return md
}

// lastSteps returns the last sum sent for each flock.
func lastSteps(at *otlpserver.Server) map[string]int64 {
	all, last := at.Metrics(), map[string]int64{}
	for _, r := range at.Requests() {
		if !r.Kept || len(all) == 0 {
			continue
		}
		for _, rm := range all[0].ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					last[r.Header.Get("X-Flock")] = m.Sum().DataPoints().At(0).IntValue()
				}
			}
		}
		all = all[1:]
	}
	return last
}

// An overflow series is sent with the metadata of its sources, also by a process that was killed and reads it from its
// ledger. Its value is the sum of all sources, including those from before the kill.
func TestOverflowIsSentAsItCameAfterAKill(t *testing.T) {
	t.Parallel()
	const counters = 20
	destination, addr, data := otlpserver.New(t, otlpserver.Options{}), freeport.Addr(t), t.TempDir()
	g := startDistribution(t, "godwit-gateway", fmt.Sprintf(metadataKeysConfig, addr, destination.GRPCAddr(), data))
	begun := time.Now()
	said := func(flock string, want int64) func() (bool, string) {
		return func() (bool, string) {
			last := lastSteps(destination)
			return last[flock] == want, fmt.Sprintf("%v is the last that was said, and %s wants %d", last, flock, want)
		}
	}
	say := func(each int64) {
		t.Helper()
		as(t, addr, "north", stepsOf(counters, begun, each))
		as(t, addr, "south", stepsOf(counters, begun, 2*each))
		wait.Until(t, delivery, said("north", counters*each))
		wait.Until(t, delivery, said("south", 2*counters*each))
	}
	say(1)
	for i := range int64(2) {
		g.Kill()
		g.Restart()
		g.ready()
		say(10 * (i + 1))
	}
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
	for _, r := range destination.Requests() {
		require.Contains(t, []string{"north", "south"}, r.Header.Get("X-Flock"))
	}
}
