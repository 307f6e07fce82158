// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/plan"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/tree"
)

// A Target remembers between scrapes what the next page is compared with. Only one goroutine may use it at a time.
type Target struct {
	catalog.Identity
	plan.History

	// Timeout is the scrape timeout, which may change: it is only reported.
	Timeout time.Duration

	cohort   *cohort
	owner    tree.Owner
	format   format
	search   search              // decides when to search for own values
	passing  int64               // what its last good page took that ended with the page
	admitted map[uint64]struct{} // hashes of the admitted lines' texts
}

// NewTarget adds a target. discovered are its labels before relabeling, final those after.
func (j *Job) NewTarget(discovered, final labels.Labels) *Target {
	t := &Target{Identity: catalog.Identity{Job: strings.Clone(final.Get(model.JobLabel)), Host: strings.Clone(final.Get(model.InstanceLabel))}}
	var (
		own []labels.Label
		key strings.Builder
	)
	final.Range(func(l labels.Label) {
		if strings.HasPrefix(l.Name, model.ReservedLabelPrefix) {
			return
		}
		l = labels.Label{Name: strings.Clone(l.Name), Value: strings.Clone(l.Value)}
		if !catalog.IsStructural(l.Name) && !j.rules.IsTooLong(l.Value) && len(t.Values) < catalog.MostVariables/2 {
			t.Values = append(t.Values, l.Value)
			l.Value = catalog.OfTarget.Of(len(t.Values) - 1)
		}
		own = append(own, l)
		key.WriteString(strconv.Quote(l.Name))
		key.WriteString(strconv.Quote(l.Value))
	})
	cfg := j.cfg.Scrape
	sw := switches{
		native:  flag(final, "__scrape_native_histograms__", cfg.ScrapeNativeHistogramsEnabled()),
		classic: flag(final, "__always_scrape_classic_histograms__", cfg.AlwaysScrapeClassicHistogramsEnabled()),
		custom:  flag(final, "__convert_classic_histograms_to_nhcb__", cfg.ConvertClassicHistogramsToNHCBEnabled()),
	}
	fmt.Fprint(&key, sw)
	t.Timeout = time.Duration(cfg.ScrapeTimeout)
	if d, err := model.ParseDuration(final.Get(model.ScrapeTimeoutLabel)); err == nil {
		t.Timeout = time.Duration(d)
	}
	t.owner = tree.NewOwner(j.tree, &t.Identity, discovered)

	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.cohorts[key.String()]
	if c == nil {
		c = newCohort(j, key.String(), own, len(t.Values), sw)
		j.cohorts[c.key] = c
	}
	c.targets.Add(1)
	t.cohort, t.Catalog = c, &c.Catalog
	return t
}

func flag(ls labels.Labels, name string, otherwise bool) bool {
	if v, err := strconv.ParseBool(ls.Get(name)); err == nil {
		return v
	}
	return otherwise
}

// Leave releases what the target shares, without stale markers: another collector continues its series. The target may
// be used again, as one that was never scraped.
func (t *Target) Leave() {
	c := t.cohort
	c.mu.Lock()
	c.Leave(&t.History)
	c.Own.Discount(&t.Identity)
	c.mu.Unlock()
	j := c.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if c.targets.Add(-1) == 0 {
		delete(j.cohorts, c.key)
		c.depart()
	}
}

// admit lets a line in, or, when the target has reached its series limit, returns the line that drops it.
func (t *Target) admit(s *Scrape, l *catalog.Line) *catalog.Line {
	c := t.cohort
	most := c.job.cfg.SeriesLimit
	if most == 0 || l.Kind != catalog.SeriesLine {
		return l
	}
	text := t.SeriesHash(l)
	if _, ok := t.admitted[text]; ok {
		return l
	}
	if len(t.admitted) >= most {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.hold(s, c.Refused(&t.Identity, l))
	}
	if t.admitted == nil {
		t.admitted = map[uint64]struct{}{}
	}
	t.admitted[text] = struct{}{}
	return l
}
