// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

const unknownType = model.MetricTypeUnknown

// A Target remembers between scrapes what the next one is compared with. One goroutine uses it at a time.
type Target struct {
	cohort  *cohort
	job     string
	host    string     // the instance
	values  []string   // of the labels with marks, and what rules make of them
	answers []uint16   // to the cohort's questions, by their numbers, plus one
	pin     *condition // of lines that are the target's own; nil while it shares them
	turned  bool       // it still has a page of lines that it shared
	own     []string   // values that most lines of its page have, by their slots
	version int        // counts how often these were others
	// restated has the lines of the last page by values that this one has.
	restated []*line
	attrs    []labels.Label // of its own resource
	common   []labels.Label // of any resource of its: what discovery tells
	timeout  time.Duration

	format  format
	plan    *plan
	diff    difference // of the last page from the plan
	carried int        // extras that pages had in common, since the plan was made
	settled bool       // the plan needs no pass: nothing the target knows besides it can change what it means
	broken  brokenState
	alive   bool         // the last scrape went well
	past    bool         // there was a scrape
	failed  failedSeries // since then
	timed   []uint64     // lines of the plan that had timestamps of their own, and so no end to mark; nil if none

	iteration uint64
	good      uint64              // the last scrape that went well
	said      map[string]metadata // by the last page; shared with its plan
	lingering map[string]lingering
	admitted  map[uint64]struct{} // texts, hashed
}

// lingering metadata was said by an earlier page.
type lingering struct {
	metadata

	last uint64
}

// metadataScrapes is for how many successful scrapes metadata outlives its last mention.
const metadataScrapes = 10

// NewTarget adds a target. discovered are its labels before relabeling, final those after.
func (j *Job) NewTarget(discovered, final labels.Labels) *Target {
	t := &Target{job: strings.Clone(final.Get(model.JobLabel)), host: strings.Clone(final.Get(model.InstanceLabel))}
	var (
		own []labels.Label
		key strings.Builder
	)
	final.Range(func(l labels.Label) {
		if strings.HasPrefix(l.Name, model.ReservedLabelPrefix) {
			return
		}
		l = labels.Label{Name: strings.Clone(l.Name), Value: strings.Clone(l.Value)}
		if !isStructural(l.Name) && !j.isTooLong(l.Value) && len(t.values) < mostVariables/2 {
			t.values = append(t.values, l.Value)
			l.Value = ofTarget.of(len(t.values) - 1)
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
	t.timeout = time.Duration(cfg.ScrapeTimeout)
	if d, err := model.ParseDuration(final.Get(model.ScrapeTimeoutLabel)); err == nil {
		t.timeout = time.Duration(d)
	}
	t.common = discoveredAttributes(discovered)
	t.attrs = resourceAttributes(nil, t.job, t.host, t.common)

	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.cohorts[key.String()]
	if c == nil {
		c = newCohort(j, key.String(), own, len(t.values), sw)
		j.cohorts[c.key] = c
	}
	c.targets.Add(1)
	t.cohort = c
	return t
}

func flag(ls labels.Labels, name string, otherwise bool) bool {
	if v, err := strconv.ParseBool(ls.Get(name)); err == nil {
		return v
	}
	return otherwise
}

// succeed notes that the scrape went well.
func (t *Target) succeed() { t.alive, t.past, t.failed, t.good = true, true, nil, t.iteration }

// leave gives up what the target shares.
func (t *Target) leave() {
	c := t.cohort
	c.mu.Lock()
	c.abandon(t.plan)
	c.differ(t, difference{})
	c.mu.Unlock()
	t.plan, t.settled, t.past, t.alive, t.failed = nil, false, false, false, nil
	j := c.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if c.targets.Add(-1) == 0 {
		delete(j.cohorts, c.key)
	}
}

// known returns what earlier pages said of a family.
func (t *Target) known(family string) (metadata, bool) {
	if md, ok := t.said[family]; ok {
		return md, true
	}
	l, ok := t.lingering[family]
	return l.metadata, ok
}

// learn replaces what the last page said by what this one did. It tells whether that makes a difference to the next.
func (t *Target) learn(said, shared map[string]metadata) (changed bool) {
	for family, md := range t.said {
		if _, ok := said[family]; !ok {
			if t.lingering == nil {
				t.lingering = map[string]lingering{}
			}
			t.lingering[family] = lingering{md, t.good}
			changed = true
		}
	}
	if !same(t.said, said) {
		changed = true
		if t.said = nil; same(shared, said) {
			t.said = shared
		} else {
			t.said = maps.Clone(said)
		}
	}
	for family := range t.lingering {
		if _, ok := said[family]; ok {
			delete(t.lingering, family)
		}
	}
	return t.forget() || changed
}

func same(a, b map[string]metadata) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// forget drops metadata that lingered long enough, and tells whether there was any.
func (t *Target) forget() (changed bool) {
	for family, l := range t.lingering {
		if t.iteration-l.last > metadataScrapes {
			delete(t.lingering, family)
			changed = true
		}
	}
	return changed
}

// admit lets a line in, or, when the target has shown as many series as it may, the one that drops it.
func (t *Target) admit(s *Scrape, l *line) *line {
	c := t.cohort
	most := c.job.cfg.SeriesLimit
	if most == 0 || l.kind != seriesLine {
		return l
	}
	text := t.seriesHash(l)
	if _, ok := t.admitted[text]; ok {
		return l
	}
	if len(t.admitted) >= most {
		c.mu.Lock()
		defer c.mu.Unlock()
		asShown := l.text
		if l.isSlotted() {
			asShown = whole(l.name, l.appendSpelled(nil, t.own))
		}
		refused := c.find(t, []byte(asShown.String()), refusedSetting)
		if refused == nil {
			refused = c.newLine(asShown, droppedLine, refusedSetting)
			c.lines.add(refused)
		}
		return c.hold(s, refused)
	}
	if t.admitted == nil {
		t.admitted = map[uint64]struct{}{}
	}
	t.admitted[text] = struct{}{}
	return l
}
