// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	samplesScraped = "scrape_samples_scraped"
	seriesAdded    = "scrape_series_added"
)

// reportNames names the series of a report, in the order of their values.
func reportNames(extra bool) []string {
	names := []string{
		"up", "scrape_duration_seconds", samplesScraped, "scrape_samples_post_metric_relabeling", seriesAdded,
	}
	if extra {
		names = append(names, "scrape_timeout_seconds", "scrape_sample_limit", "scrape_body_size_bytes")
	}
	return names
}

// report appends the values of the report, whose lines come last.
func (s *Scrape) report(r Report, res *Result) {
	j := s.target.cohort.job
	up := 0.0
	if res.Err == nil {
		up = 1
	}
	s.values = append(s.values, up, r.Duration.Seconds(),
		float64(res.Samples), float64(res.PostRelabel), float64(res.Added))
	if len(j.report) > 5 {
		s.values = append(s.values, s.target.timeout.Seconds(), float64(j.cfg.Scrape.SampleLimit), float64(r.BodyBytes))
	}
	if s.times != nil {
		for len(s.times) < len(s.values) {
			s.times = append(s.times, noTime)
		}
	}
}

// Fail reports a scrape that brought no page.
func (t *Target) Fail(at time.Time, r Report) Result {
	return t.begin(at, t.format).End(r)
}

// Retire ends what the target had with stale markers, the report's series included, and lets go of what it shares. The
// target may be begun anew, as one never scraped.
func (t *Target) Retire(at time.Time) Result {
	var res Result
	c := t.cohort
	if t.past && !c.job.cfg.NoStaleMarkers {
		c.mu.Lock()
		p := &c.scratch
		p.begin(t)
		p.page(c.report, nil, 0, nil)
		for i, l := range c.report {
			l.number = int32(i)
		}
		gone := p.gone(nil)
		values := make([]float64, len(c.report)+len(gone))
		for i := range values {
			values[i] = staleMarker
		}
		l := p.lay(0, c.report, nil, gone, math.MaxInt64)
		c.mu.Unlock()
		new(Scrape).render(l, nil, &view{target: t, at: pcommon.Timestamp(at.UnixMilli() * 1e6), values: values}, &res)
		res.tree = nil // nobody will show the like again
	}
	t.leave()
	return res
}
