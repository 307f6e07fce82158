// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// reportNames names the series of a report, in the order of their values.
func reportNames(extra bool) []string {
	names := []string{
		"up", "scrape_duration_seconds", catalog.SamplesScraped, "scrape_samples_post_metric_relabeling", catalog.SeriesAdded,
	}
	if extra {
		names = append(names, "scrape_timeout_seconds", "scrape_sample_limit", "scrape_body_size_bytes")
	}
	return names
}

// report appends the values of the report, whose lines are the last ones.
func (e *ending) report() {
	j, res := e.target.cohort.job, &e.res
	up := 0.0
	if res.Err == nil {
		up = 1
	}
	e.values = append(e.values, up, e.about.Duration.Seconds(),
		float64(res.Samples), float64(res.PostRelabel), float64(res.Added))
	if len(j.rules.Report) > 5 {
		e.values = append(e.values, e.target.Timeout.Seconds(), float64(j.cfg.Scrape.SampleLimit), float64(e.about.BodyBytes))
	}
	e.fillNoTimes()
}

// Fail reports a scrape that returned no page.
func (t *Target) Fail(at time.Time, r Report) Result {
	return t.begin(at, t.format).End(r)
}

// Retire ends all series of the target with stale markers, including those of the report, and releases what the target
// shares. The target may be used again, as one that was never scraped.
func (t *Target) Retire(at time.Time) Result { return t.RetireBeside(at, nil) }

// RetireBeside does the same, except that series of other targets, which have the same labels, do not end. others is
// what these show.
func (t *Target) RetireBeside(at time.Time, others Shown) Result {
	e := ending{Scrape: &Scrape{target: t}}
	c := t.cohort
	if t.Past && !c.job.cfg.NoStaleMarkers {
		c.mu.Lock()
		p := &c.Scratch
		p.Begin(&t.Identity, &t.History)
		continues := func(l *catalog.Line) bool {
			if l.Point == nil {
				return false
			}
			_, shown := others[t.PointHash(l.Point)]
			return shown
		}
		report := slices.DeleteFunc(slices.Clone(c.ReportLines), continues)
		p.Page(report, nil, 0, nil)
		for i, l := range report {
			l.Number = int32(i)
		}
		gone := slices.DeleteFunc(p.Gone(nil), continues)
		values := make([]float64, len(report)+len(gone))
		for i := range values {
			values[i] = plan.StaleMarker
		}
		l := p.Lay(0, report, nil, gone, math.MaxInt64)
		c.mu.Unlock()
		e.render(l, nil, &tree.View{Owner: &t.owner, At: pcommon.Timestamp(at.UnixMilli() * 1e6), Values: values})
		e.res.tree, e.res.lender = nil, nil // no other page will have these metrics
	}
	t.Leave()
	return e.res
}

// Shown has hashes of points.
type Shown map[uint64]struct{}

// Shown returns the points of the target's last page and of its report, nil if it was never scraped.
func (t *Target) Shown() Shown {
	if !t.Past {
		return nil
	}
	t.cohort.mu.Lock()
	defer t.cohort.mu.Unlock()
	shown := make(Shown, t.usual())
	t.Points(func(p *catalog.Point) { shown[t.PointHash(p)] = struct{}{} })
	for _, l := range t.cohort.ReportLines {
		if l.Point != nil {
			shown[t.PointHash(l.Point)] = struct{}{}
		}
	}
	return shown
}
