// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// What vmagent's jobs may set one by one, and here a receiver sets for all of its jobs.
type jobOptions struct {
	seriesLimit int64
	unmarked    bool
	aligned     bool
	offset      time.Duration
}

func (o jobOptions) set(settings document.Table) {
	if o.seriesLimit > 0 {
		settings.Set("series_limit", o.seriesLimit)
	}
	if o.unmarked {
		settings.Set("stale_markers", false)
	}
	if o.aligned {
		settings.Set("align_scrapes", true)
	}
	if o.offset > 0 {
		settings.Set("initial_scrape_offset", promconfig.GoDuration(o.offset))
	}
}

func (j *job) takeOptions(f *flags, globals *yaml.Node) {
	j.options.seriesLimit = f.number("promscrape.seriesLimitPerTarget", 0)
	if n := document.Remove(j.node, "series_limit"); n != nil {
		limit, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil {
			j.say(report.Lost, n, "series_limit", "it must be a whole number")
		}
		j.options.seriesLimit = limit
	}
	j.options.unmarked = f.yes("promscrape.noStaleMarkers")
	if n := document.Remove(j.node, "no_stale_markers"); n != nil {
		j.options.unmarked = document.Truth(n.Value)
	}
	interval := time.Minute
	for _, from := range []*yaml.Node{globals, j.node} {
		if n := document.Find(from, "scrape_interval"); n != nil {
			if d, err := promconfig.Duration(n.Value); err == nil && d > 0 {
				interval = d
			}
		}
	}
	if n := document.Remove(j.node, "scrape_align_interval"); n != nil {
		j.options.aligned = true
		if d, err := promconfig.Duration(n.Value); err != nil || d <= 0 || d%interval != 0 && interval%d != 0 {
			j.say(report.Changed, n, "scrape_align_interval", "scrapes are at multiples of their own interval")
		}
	}
	if n := document.Remove(j.node, "scrape_offset"); n != nil {
		d, err := promconfig.Duration(n.Value)
		if err != nil {
			j.say(report.Lost, n, "scrape_offset", err.Error())
		}
		j.options.aligned, j.options.offset = true, d
	}
}
