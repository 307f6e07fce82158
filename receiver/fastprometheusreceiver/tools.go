// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"fmt"
	"log/slog"
	"reflect"
	"strings"

	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	promconfig "github.com/prometheus/prometheus/config"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
)

// tools are what the targets of a job are scraped with. They never change: a new configuration makes new ones, which
// keep what they can of the old ones.
type tools struct {
	cfg      *promconfig.ScrapeConfig
	client   *fetch.Client
	page     *page.Job
	accept   string
	failures *slog.Logger // of scrape_failure_log_file; nil if there is none
}

// newTools makes the tools of a job. It keeps what a change leaves alone: connections, plans, series.
func (r *scraper) newTools(cfg *promconfig.ScrapeConfig, old *tools) (*tools, error) {
	accept, err := acceptHeader(cfg)
	if err != nil {
		return nil, err
	}
	g := &tools{cfg: cfg, accept: accept}
	if old != nil && reflect.DeepEqual(clientConfig(old.cfg), clientConfig(cfg)) {
		g.client = old.client
	} else if g.client, err = fetch.NewClient(cfg, r.fetchOptions(cfg)); err != nil {
		return nil, fmt.Errorf("cannot set up the HTTP client: %w", err)
	}
	if old != nil && reflect.DeepEqual(pageConfig(old.cfg), pageConfig(cfg)) {
		g.page = old.page
	} else if g.page, err = page.NewJob(r.pageConfig(cfg)); err != nil {
		return nil, fmt.Errorf("cannot set up the reading of pages: %w", err)
	}
	return g, nil
}

// clientConfig is the part of the configuration that decides how pages are fetched.
func clientConfig(cfg *promconfig.ScrapeConfig) promconfig.ScrapeConfig {
	return promconfig.ScrapeConfig{
		JobName:           cfg.JobName,
		HTTPClientConfig:  cfg.HTTPClientConfig,
		EnableCompression: cfg.EnableCompression,
		BodySizeLimit:     cfg.BodySizeLimit,
	}
}

// pageConfig is the part of the configuration that decides what pages mean: without discovery, fetching and intervals.
func pageConfig(cfg *promconfig.ScrapeConfig) promconfig.ScrapeConfig {
	page := *cfg
	page.ServiceDiscoveryConfigs = nil
	page.RelabelConfigs = nil
	page.HTTPClientConfig = commonconfig.HTTPClientConfig{}
	page.EnableCompression = false
	page.ScrapeProtocols = nil
	page.BodySizeLimit = 0
	page.ScrapeInterval, page.ScrapeTimeout = 0, 0
	page.Params = nil
	page.MetricsPath, page.Scheme = "", ""
	page.TargetLimit, page.KeepDroppedTargets = 0, 0
	page.ScrapeFailureLogFile = ""
	return page
}

// acceptHeader offers the job's protocols, most wanted first, and anything else last.
func acceptHeader(cfg *promconfig.ScrapeConfig) (string, error) {
	escaping, err := promconfig.ToEscapingScheme(cfg.MetricNameEscapingScheme, cfg.MetricNameValidationScheme)
	if err != nil {
		return "", fmt.Errorf("cannot use `metric_name_escaping_scheme`: %w", err)
	}
	var header strings.Builder
	weight := len(promconfig.ScrapeProtocolsHeaders) + 1
	for _, protocol := range cfg.ScrapeProtocols {
		header.WriteString(promconfig.ScrapeProtocolsHeaders[protocol])
		if protocol == promconfig.PrometheusText1_0_0 || protocol == promconfig.OpenMetricsText1_0_0 {
			header.WriteString(";" + model.EscapingKey + "=" + escaping.String())
		}
		fmt.Fprintf(&header, ";q=0.%d,", weight)
		weight--
	}
	fmt.Fprintf(&header, "*/*;q=0.%d", weight)
	return header.String(), nil
}

func (r *scraper) pageConfig(cfg *promconfig.ScrapeConfig) page.Config {
	// Pages may outlive this configuration, so they must not hold parts that they do not need, such as static targets.
	scrape := pageConfig(cfg)
	return page.Config{
		Scrape:         &scrape,
		External:       r.cfg.Prometheus.external(),
		Version:        r.settings.BuildInfo.Version,
		TrimSuffixes:   r.cfg.TrimMetricSuffixes,
		ExtraMetrics:   cfg.ExtraScrapeMetrics != nil && *cfg.ExtraScrapeMetrics,
		NoStaleMarkers: !r.cfg.StaleMarkers,
		JobAndInstance: r.cfg.JobAndInstance,
		KeepIdentity:   r.cfg.KeepJobAndInstance,
		SeriesLimit:    r.cfg.SeriesLimit,
		MaxMemory:      r.cfg.MaxPageMemory,
		Room:           r.room,
		Reuse:          r.reuse.allowed,
		Changes:        r.reuse.changes,
		Unread:         r.reuse.unread,
		Later:          r.reuse.later,
		Logger:         r.settings.Logger,

		BrokenHistograms: &r.counters.brokenHistograms,
	}
}

func (r *scraper) fetchOptions(cfg *promconfig.ScrapeConfig) fetch.Options {
	return fetch.Options{
		UserAgent:     r.settings.BuildInfo.Command + "/" + r.settings.BuildInfo.Version,
		LocalIdentity: r.cfg.LocalIdentity,
		Memory:        &r.buffers,
		MaxWire:       int64(cfg.BodySizeLimit),
		Dial:          r.dial,
	}
}
