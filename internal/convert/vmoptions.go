// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// What vmagent's jobs may set one by one, and here a receiver sets for all of its jobs.
type jobOptions struct {
	seriesLimit int64
	unmarked    bool
	aligned     bool
	offset      time.Duration
}

func (o jobOptions) set(settings table) {
	if o.seriesLimit > 0 {
		settings.set("series_limit", o.seriesLimit)
	}
	if o.unmarked {
		settings.set("stale_markers", false)
	}
	if o.aligned {
		settings.set("align_scrapes", true)
	}
	if o.offset > 0 {
		settings.set("initial_scrape_offset", goDuration(o.offset))
	}
}

func (j *vmJob) takeOptions(f *flags, globals *yaml.Node) {
	j.options.seriesLimit = f.number("promscrape.seriesLimitPerTarget", 0)
	if n := remove(j.node, "series_limit"); n != nil {
		limit, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil {
			j.say(Lost, n, "series_limit", "it must be a whole number")
		}
		j.options.seriesLimit = limit
	}
	j.options.unmarked = f.yes("promscrape.noStaleMarkers")
	if n := remove(j.node, "no_stale_markers"); n != nil {
		j.options.unmarked = truth(n.Value)
	}
	interval := time.Minute
	for _, from := range []*yaml.Node{globals, j.node} {
		if n := find(from, "scrape_interval"); n != nil {
			if d, err := duration(n.Value); err == nil && d > 0 {
				interval = d
			}
		}
	}
	if n := remove(j.node, "scrape_align_interval"); n != nil {
		j.options.aligned = true
		if d, err := duration(n.Value); err != nil || d <= 0 || d%interval != 0 && interval%d != 0 {
			j.say(Changed, n, "scrape_align_interval", "scrapes are at multiples of their own interval")
		}
	}
	if n := remove(j.node, "scrape_offset"); n != nil {
		d, err := duration(n.Value)
		if err != nil {
			j.say(Lost, n, "scrape_offset", err.Error())
		}
		j.options.aligned, j.options.offset = true, d
	}
}
