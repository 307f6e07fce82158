// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inorder"
	"github.com/godwit-otel/godwit/internal/redact"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/api"
)

// A view is the receiver as its API shows it.
type view struct{ *scraper }

var _ api.View = view{}

// serve starts the API, if it is enabled.
func (r *scraper) serve(ctx context.Context, host component.Host) error {
	if !r.cfg.APIServer.Enabled {
		return nil
	}
	v := view{r}
	if err := r.registerer().Register(v); err != nil {
		return fmt.Errorf("cannot set up the metrics of `api_server`: %w", err)
	}
	r.api = api.New(r.cfg.APIServer, r.settings.TelemetrySettings, r.settings.BuildInfo, v)
	return r.api.Start(ctx, host)
}

// registerer returns where to register metrics that the API serves.
func (r *scraper) registerer() prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"receiver": r.settings.ID.String()}, r.registry)
}

var healths = map[string]api.Health{stateHealthy: api.Up, stateFailing: api.Down, stateUnknown: api.Unknown}

// Pools implements [api.View].
func (v view) Pools() []api.Pool {
	var out []api.Pool
	for _, j := range v.allJobs() {
		if pool, ok := j.pool(); ok {
			out = append(out, pool)
		}
	}
	inorder.Sort(out, func(a, b api.Pool) int { return cmp.Compare(a.Job.JobName, b.Job.JobName) })
	return out
}

// pool returns the job as the API shows it, unless it has ended.
func (j *job) pool() (api.Pool, bool) {
	now := j.now()
	out := api.Pool{Job: now.cfg, Drops: now.found.Drops}
	for _, dropped := range now.found.Dropped {
		out.Dropped = append(out.Dropped, withoutSecrets(dropped.Labels(now.cfg)))
	}
	for _, t := range now.targets {
		s := t.snapshot()
		out.Targets = append(out.Targets, api.Target{
			Discovered: withoutSecrets(s.Discovered), Labels: s.Labels, URL: s.URL, Health: healths[s.State],
			LastError: s.LastError, LastScrape: s.LastScrape, Duration: s.LastDuration, Families: t.families,
		})
	}
	inorder.Sort(out.Targets, func(a, b api.Target) int { return cmp.Compare(a.URL, b.URL) })
	return out, !now.ended
}

// withoutSecrets hides what the URL of http_sd_configs has of them. Parameters of the target's own URL are shown, as Prometheus
// does.
func withoutSecrets(discovered labels.Labels) labels.Labels {
	at := discovered.Get(metaURL)
	if clean := redact.URL(at); clean != at {
		return labels.NewBuilder(discovered).Set(metaURL, clean).Labels()
	}
	return discovered
}

// metaURL is the label for the URL that a target was found at.
const metaURL = model.MetaLabelPrefix + "url"

// Config implements [api.View].
func (v view) Config() (text string, since time.Time, rejected bool) {
	v.mu.Lock()
	allocated, since, rejected := v.allocated, v.applied, v.rejected
	v.mu.Unlock()
	return v.cfg.Prometheus.text(allocated), since, rejected
}

// Gatherer implements [api.View].
func (v view) Gatherer() prometheus.Gatherer { return v.registry }

var (
	poolsMade = prometheus.NewDesc("prometheus_target_scrape_pools_total",
		"Scrape pools that were created.", nil, nil)
	poolTargets = prometheus.NewDesc("prometheus_target_scrape_pool_targets",
		"Targets in the scrape pool.", []string{"scrape_job"}, nil)
	poolLimit = prometheus.NewDesc("prometheus_target_scrape_pool_target_limit",
		"Targets that the scrape pool may have, 0 without a limit.", []string{"scrape_job"}, nil)
)

// Describe implements [prometheus.Collector].
func (view) Describe(out chan<- *prometheus.Desc) {
	out <- poolsMade
	out <- poolTargets
	out <- poolLimit
}

// Collect implements [prometheus.Collector].
func (v view) Collect(out chan<- prometheus.Metric) {
	v.mu.Lock()
	made := v.made
	v.mu.Unlock()
	out <- prometheus.MustNewConstMetric(poolsMade, prometheus.CounterValue, float64(made))
	for _, j := range v.allJobs() {
		j.mu.Lock()
		targets, limit, ended := len(j.targets), j.tools.cfg.TargetLimit, j.ended
		j.mu.Unlock()
		if !ended {
			out <- prometheus.MustNewConstMetric(poolTargets, prometheus.GaugeValue, float64(targets), j.name)
			out <- prometheus.MustNewConstMetric(poolLimit, prometheus.GaugeValue, float64(limit), j.name)
		}
	}
}
