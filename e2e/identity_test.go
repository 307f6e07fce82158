// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/history"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// namedPage has a target_info with its own service name, as an OpenTelemetry SDK writes it for clients that accept
// UTF-8 names.
const namedPage = goodPage + "# TYPE target_info gauge\n" +
	"target_info{\"service.name\"=\"theirs\",\"service.instance.id\"=\"0a1b\",\"service.version\"=\"1.2\"} 1\n"

// identityConfig scrapes a target twice, with job and instance as in Prometheus and as in contrib. One processor moves
// a label to the resource, another changes service.name, which becomes the job.
const identityConfig = `
receivers:
  fastprometheus:
    keep_job_and_instance: true
    config: {scrape_configs: [{job_name: kept, scrape_interval: 200ms, scrape_timeout: 200ms, static_configs: [{targets: [%[1]q], labels: {site: pond}}]}]}
  prometheus:
    config: {scrape_configs: [{job_name: renamed, scrape_interval: 200ms, scrape_timeout: 200ms, static_configs: [{targets: [%[1]q], labels: {site: pond}}]}]}
processors:
  groupbyattrs: {keys: [site]}
  transform: {metric_statements: ['set(resource.attributes["service.name"], Concat(["eu", resource.attributes["service.name"]], "/"))']}
exporters:
  remotewrite: {endpoint: %[2]q, batch: {timeout: 20ms}, target_info: {interval: 0s}}
service:
  pipelines: {metrics: {receivers: [fastprometheus, prometheus], processors: [groupbyattrs, transform], exporters: [remotewrite]}}
`

// The job and instance of series in Prometheus. With keep_job_and_instance they are those of the scrape, whether the
// target is up or down. Without, they come from the page while it can be read, so that two series of `up` exist.
func TestJobAndInstanceThroughRemoteWrite(t *testing.T) {
	t.Parallel()
	server := rwserver.New(t, rwserver.Options{})
	target := targets.New(t, targets.Page{Body: namedPage})
	c := startDistribution(t, "godwit", fmt.Sprintf(identityConfig, target.Addr(), server.URL()))
	value := func(name string, v float64, pairs ...string) {
		t.Helper()
		wait.Until(t, firstSeries, func() (bool, string) {
			for _, s := range server.Series(name, pairs...) {
				if last := s.Samples[len(s.Samples)-1]; last.V == v {
					return true, ""
				}
			}
			return false, fmt.Sprintf("%s with %q has not become %v", name, pairs, v)
		})
	}
	const kept, theirs, renamed = "eu/kept", "eu/theirs", "eu/renamed"
	value("up", 1, "job", kept, "instance", target.Addr())
	value("up", 1, "job", theirs, "instance", "0a1b")
	value("target_info", 1, "job", kept)
	value("geese_flying", 42, "job", kept)

	// answers returns the series of a query's result, by job.
	answers := func(query string) map[string][]labels.Labels {
		t.Helper()
		past := history.New(t)
		for _, s := range server.Series("") {
			for _, sample := range s.Samples {
				past.Put(s.Labels, time.UnixMilli(sample.T), sample.V)
			}
		}
		past.MoveTo(time.Now())
		found := map[string][]labels.Labels{}
		for _, s := range past.Query(query) {
			job := s.Metric.Get("job")
			found[job] = append(found[job], s.Metric)
		}
		return found
	}
	// The page's target_info, and the label moved to the resource, can be joined as usual.
	joined := answers(`geese_flying{flock="north"} * on (job, instance) group_left (site, service_version, service_name) target_info`)
	assert.Equal(t, map[string][]labels.Labels{
		kept:   {labels.FromStrings("job", kept, "instance", target.Addr(), "flock", "north", "site", "pond", "service_version", "1.2", "service_name", "theirs")},
		theirs: {labels.FromStrings("job", theirs, "instance", "0a1b", "flock", "north", "site", "pond", "service_version", "1.2")},
	}, joined)

	// The target goes down.
	target.Then(targets.Page{Fault: targets.Reset})
	value("up", 0, "job", kept, "instance", target.Addr())
	value("up", 0, "job", renamed, "instance", target.Addr())
	died := answers(`up == 0 and max_over_time(up[5m]) == 1`)
	assert.Len(t, died[kept], 1, "it was up and is not")
	assert.Empty(t, died[theirs], "nobody says any more that it is there")
	assert.Empty(t, died[renamed], "it was never up under this name")
	assert.Len(t, server.Series("up", "job", kept), 1)
	assert.Empty(t, server.Series("up", "job", "kept"))
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	assert.Empty(t, server.Violations())
}
