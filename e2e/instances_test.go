// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// twice has two components of each type. The first scraper has two targets, one of which is down; the second keeps one
// of three. What is scraped goes by a stream and by remote write to receivers of the same process, and from there to a
// server.
const twice = `
receivers:
  fastprometheus:
    config: {scrape_configs: [{job_name: one, scrape_interval: 1s, static_configs: [{targets: ['%[1]s', '%[2]s']}]}]}
  fastprometheus/b:
    config:
      scrape_configs:
        - job_name: two
          scrape_interval: 1s
          static_configs: [{targets: ['%[1]s', 'a.invalid:1', 'b.invalid:1']}]
          relabel_configs: [{source_labels: [__address__], regex: '.*invalid.*', action: drop}]
  otlpstream: {protocols: {grpc: {endpoint: '%[3]s'}}}
  otlpstream/b: {protocols: {grpc: {endpoint: '%[4]s'}}}
  remotewrite: {endpoint: '%[5]s'}
  remotewrite/b: {endpoint: '%[6]s'}
processors:
  cardinality:
    rules: [{name: few, group_by: [metric], max_series: 1, on_exceed: [overflow]}, {name: made, match: {metric: none}, aggregate: {by: [a]}}]
  cardinality/b: # the first one leaves it one series of each metric
    rules: [{name: few, group_by: ['resource:service.name'], max_series: 2, on_exceed: [overflow]}, {name: made, match: {metric: none}, aggregate: {by: [a]}}]
exporters:
  otlpstream: {endpoint: '%[3]s', tls: {insecure: true}}
  otlpstream/b: {endpoint: '%[4]s', tls: {insecure: true}}
  remotewrite: {endpoint: 'http://%[5]s/api/v1/write'}
  remotewrite/b: {endpoint: 'http://%[6]s/api/v1/write'}
  remotewrite/out: {endpoint: '%[7]s'}
service:
  pipelines:
    metrics: {receivers: [fastprometheus], processors: [cardinality], exporters: [otlpstream, remotewrite]}
    metrics/b: {receivers: [fastprometheus/b], processors: [cardinality, cardinality/b], exporters: [otlpstream/b, remotewrite/b]}
    metrics/out: {receivers: [otlpstream, otlpstream/b, remotewrite, remotewrite/b], exporters: [remotewrite/out]}
`

var ofOurs = regexp.MustCompile(`^otelcol_(receiver|processor|exporter)_(fastprometheus|otlpstream|remotewrite|cardinality)_`)

// Two components of the same type in one process share their metrics, but each has its own numbers.
func TestInstancesHaveTheirOwnNumbers(t *testing.T) {
	t.Parallel()
	target, sink := targets.New(t, targets.Page{Body: "geese{ring=\"a\"} 1\ngeese{ring=\"b\"} 2\n"}), rwserver.New(t, rwserver.Options{CountOnly: true})
	c := startDistribution(t, "godwit", fmt.Sprintf(twice, target.Addr(), freeport.Addr(t), freeport.Addr(t), freeport.Addr(t), freeport.Addr(t), freeport.Addr(t), sink.URL()))
	wait.Until(t, delivery, func() (bool, string) {
		text := page(t, c.telemetry)
		for name, least := range map[string]float64{
			"otelcol_receiver_otlpstream_requests": 1, "otelcol_receiver_remotewrite_requests": 1, "otelcol_processor_cardinality_rejected_points": 1,
		} {
			kind := ofOurs.FindStringSubmatch(name)
			for _, id := range []string{kind[2], kind[2] + "/b"} {
				if metricWith(t, text, name, fmt.Sprintf("%s=%q", kind[1], id)) < least {
					return false, name + " of " + id
				}
			}
		}
		for _, want := range []struct {
			receiver, state string
			targets         float64
		}{
			{"fastprometheus", "healthy", 1},
			{"fastprometheus", "failing", 1},
			{"fastprometheus", "dropped", 0},
			{"fastprometheus/b", "healthy", 1},
			{"fastprometheus/b", "failing", 0},
			{"fastprometheus/b", "dropped", 2},
		} {
			if n := metricWith(t, text, "otelcol_receiver_fastprometheus_targets", fmt.Sprintf("receiver=%q", want.receiver), fmt.Sprintf("state=%q", want.state)); n != want.targets {
				return false, fmt.Sprintf("%v targets, %+v", n, want)
			}
		}
		return true, ""
	})
	text := page(t, c.telemetry)
	series := map[string]map[string]bool{} // components by metric
	for line := range strings.Lines(text) {
		match := ofOurs.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		kind, of := match[1], match[2]
		id := regexp.MustCompile(`[{,]` + kind + `="([^"]*)"`).FindStringSubmatch(line)
		require.NotNil(t, id, line)
		assert.Regexp(t, "^"+of+"(/b|/out)?$", id[1], line)
		name := line[:strings.IndexByte(line, '{')]
		if series[name] == nil {
			series[name] = map[string]bool{}
		}
		if instance := regexp.MustCompile(`[{,]pipeline="([^"]*)"`).FindStringSubmatch(line); kind == "processor" && assert.NotNil(t, instance, line) {
			id[1] += " in " + instance[1]
		}
		series[name][id[1]] = true
	}
	assert.Greater(t, len(series), 60)
	for name, ids := range series {
		kind := ofOurs.FindStringSubmatch(name)
		want := []string{kind[2], kind[2] + "/b"}
		if kind[1] == "processor" {
			want = []string{"cardinality in metrics", "cardinality in metrics/b", "cardinality/b in metrics/b"}
		}
		if !slices.ContainsFunc(want, func(id string) bool { return ids[id] }) {
			continue // it is a metric of the exporter that all lead to
		}
		for _, id := range want {
			assert.True(t, ids[id], "%s of %s: %v", name, id, ids)
		}
	}
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
}
