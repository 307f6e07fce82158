// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

// A Config is the configuration that decides the meaning of a job's lines.
type Config struct {
	// Scrape gives honor_labels, metric_relabel_configs, the limits of labels and the naming scheme.
	Scrape *promconfig.ScrapeConfig
	// External labels are set on every series, over its own.
	External labels.Labels
	// Version is the version of the default scope.
	Version string
	// TrimSuffixes removes type and unit from the names of metrics.
	TrimSuffixes bool
	// Report names the series that a scrape reports about itself.
	Report []string
	// KeepIdentity leaves series without a job or an instance if rules removed it, as Prometheus does, instead of using
	// the target's.
	KeepIdentity bool
}

// Rules are the rules of a job, for all its catalogs. They determine which labels of a line, besides its name, can
// change what becomes of it. Of a target's labels a line only stores that they exist; the values are taken from the
// target when metrics are made; see question.
type Rules struct {
	Config

	opaque   bool            // every label can
	IsMapped bool            // a label may get another label's value
	read     map[string]bool // by the names under which labels were exposed

	MostWhole     int // texts that a catalog keeps whole before it starts to cut them
	MostShapes    int // that a catalog keeps
	MostQuestions int // that a catalog asks
}

// NewRules makes the rules of a job.
func NewRules(cfg Config) Rules {
	r := Rules{Config: cfg, read: map[string]bool{}, MostWhole: MostWhole, MostShapes: mostShapes, MostQuestions: MostQuestions}
	r.opaque = cfg.Scrape.LabelValueLengthLimit > 0
	for _, c := range cfg.Scrape.MetricRelabelConfigs {
		switch c.Action {
		case relabel.LabelDrop, relabel.LabelKeep:
			continue // these read names only
		case relabel.LabelMap:
			r.IsMapped = true
			continue
		default:
		}
		// A rule may read, or write, a label that was renamed.
		r.opaque = r.opaque || r.IsMapped
		r.IsMapped = r.IsMapped || strings.Contains(c.TargetLabel, "$")
		for _, n := range c.SourceLabels {
			r.read[exposedName(string(n))] = true
		}
		r.read[exposedName(c.TargetLabel)] = true
	}
	return r
}

// exposedName returns a label's name without the prefix that was added because the target has a label of that name.
func exposedName(name string) string {
	for strings.HasPrefix(name, model.ExportedLabelPrefix) {
		name = name[len(model.ExportedLabelPrefix):]
	}
	return name
}

// fixes reports whether the value of a line's own label can change what becomes of the line.
func (r *Rules) fixes(name string) bool {
	return r.read[exposedName(name)] || strings.HasPrefix(name, scopePrefix) ||
		name == model.BucketLabel || name == model.QuantileLabel
}

// A mark, followed by a number, stands for the value of a label. It is random, so that no page can contain it.
type mark string

var (
	// OfTarget marks values of a target.
	OfTarget = mark("\x01" + rand.Text() + "\x02")
	ofLine   = mark("\x01" + rand.Text() + "\x02")
)

// number returns the number of the label that a value stands for, or -1.
func (m mark) number(v string) int {
	if len(v) != len(m)+3 || !strings.HasPrefix(v, string(m)) {
		return -1
	}
	n := v[len(m):]
	return int(n[0]-'0')<<10 + int(n[1]-'0')<<5 + int(n[2]-'0')
}

// Of returns the mark with a number, in digits that need no escape, since texts with marks are parsed.
func (m mark) Of(i int) string {
	return string(m) + string([]byte{'0' + byte(i>>10), '0' + byte(i>>5&31), '0' + byte(i&31)})
}

// noLabel stands for the job or the instance of series that have none although their target has. It is random, too.
var noLabel = "\x01" + rand.Text() + "\x03"

// marked returns the number of the target's label that a value stands for, or -1.
func marked(v string) int { return OfTarget.number(v) }

// MostVariables limits the labels of a target that marks can name; a target with more has a cohort of its own.
const MostVariables = 64 * 64

// final returns the labels of a sample after honor_labels, metric_relabel_configs and external labels, as Prometheus
// and the stock receiver set them, with marks for values that the target fills in. A dropped sample has no labels.
func (c *Catalog) final(exposed labels.Labels, t *Identity) (labels.Labels, *Condition, error) {
	q := &c.asking
	q.target, q.known, q.given = t, nil, q.given[:0]
	set, err := q.final(exposed)
	return set, q.condition(), err
}

// finalAgain returns the final labels once more, under the condition that applied the first time.
func (c *Catalog) finalAgain(exposed labels.Labels, cond *Condition) (labels.Labels, error) {
	q := &c.asking
	q.target, q.known, q.given = nil, cond, q.given[:0]
	return q.final(exposed)
}

// valueOf returns the value of a target's label under the condition.
func (cond *Condition) valueOf(l labels.Label) string {
	if i := marked(l.Value); i >= 0 && cond.pinned() != 0 {
		return cond.values[i]
	}
	return l.Value
}

func (q *inquiry) final(exposed labels.Labels) (labels.Labels, error) {
	c, pin := q.Catalog, q.pin()
	cfg := c.Rules.Scrape
	b := c.finishing
	b.Reset(exposed)
	if cfg.HonorLabels {
		for _, l := range c.labels {
			if !exposed.Has(l.Name) {
				b.Set(l.Name, pin.valueOf(l))
			}
		}
	} else {
		var moved []labels.Label
		for _, l := range c.labels {
			if v := exposed.Get(l.Name); v != "" {
				moved = append(moved, labels.Label{Name: l.Name, Value: v})
			}
			b.Set(l.Name, pin.valueOf(l))
		}
		slices.SortStableFunc(moved, func(a, b labels.Label) int { return len(a.Name) - len(b.Name) })
		for _, l := range moved {
			name := model.ExportedLabelPrefix + l.Name
			for b.Get(name) != "" {
				name = model.ExportedLabelPrefix + name
			}
			b.Set(name, l.Value)
		}
	}
	if isKept, err := q.apply(b, exposed.Len()); err != nil || !isKept {
		return labels.EmptyLabels(), err
	}
	set, err := q.spelled(b)
	if err != nil {
		return set, err
	}
	switch {
	case set.IsEmpty():
		return set, nil
	case !set.Has(model.MetricNameLabel):
		return set, fmt.Errorf("cannot use series %.200s: no metric name after relabeling", exposed)
	case !set.IsValid(cfg.MetricNameValidationScheme):
		return set, fmt.Errorf("cannot use series %.200s: invalid metric name or label names", exposed)
	}
	if err := c.withinLimits(set); err != nil {
		return set, err
	}
	set = c.external(set)
	if name, found := set.HasDuplicateLabelNames(); found {
		return set, fmt.Errorf("cannot use series %.200s: label %q is there twice", exposed, name)
	}
	if set.Get(model.MetricNameLabel) == "" {
		return set, fmt.Errorf("cannot use series %.200s: no metric name", exposed)
	}
	return set, nil
}

// manyLabels is the number of labels from which on relabeling keeps its builder short: a builder compares each label
// with all that were set and deleted, and rules about names may set or delete them all.
const manyLabels = 64

// applyRules applies rules to labels, about as many as given, and reports whether these are kept.
func applyRules(b *labels.Builder, about int, rules []*relabel.Config) bool {
	if about <= manyLabels {
		return relabel.ProcessBuilder(b, rules...)
	}
	for _, r := range rules {
		set := b.Labels()
		b.Reset(set)
		if r.Action == relabel.LabelMap {
			b.Reset(mapNames(set, r))
		} else if !relabel.ProcessBuilder(b, r) {
			return false
		}
	}
	return true
}

// mapNames applies a labelmap rule: labels are copied to other names. If several labels are copied to one name, the
// last one counts, and removes the name if it is empty.
func mapNames(set labels.Labels, r *relabel.Config) labels.Labels {
	mapped := map[string]string{}
	set.Range(func(l labels.Label) {
		if r.Regex.MatchString(l.Name) {
			mapped[r.Regex.ReplaceAllString(l.Name, r.Replacement)] = l.Value
		}
	})
	b := labels.NewScratchBuilder(set.Len() + len(mapped))
	set.Range(func(l labels.Label) {
		if _, isMapped := mapped[l.Name]; !isMapped {
			b.Add(l.Name, l.Value)
		}
	})
	for name, v := range mapped {
		if v != "" {
			b.Add(name, v)
		}
	}
	b.Sort()
	return b.Labels()
}

// external sets the external labels.
func (c *Catalog) external(set labels.Labels) labels.Labels {
	if c.Rules.External.IsEmpty() {
		return set
	}
	b := labels.NewBuilder(set)
	c.Rules.External.Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
	return b.Labels()
}

func (c *Catalog) withinLimits(set labels.Labels) error {
	cfg := c.Rules.Scrape
	name := set.Get(model.MetricNameLabel)
	if most := int(cfg.LabelLimit); most > 0 && set.Len() > most {
		return limitErrorf("label_limit exceeded (metric: %.50s, number of labels: %d, limit: %d)", name, set.Len(), most)
	}
	nameMost, valueMost := int(cfg.LabelNameLengthLimit), int(cfg.LabelValueLengthLimit)
	if nameMost == 0 && valueMost == 0 {
		return nil
	}
	return set.Validate(func(l labels.Label) error {
		if nameMost > 0 && len(l.Name) > nameMost {
			return limitErrorf("label_name_length_limit exceeded (metric: %.50s, label name: %.50s, length: %d, limit: %d)",
				name, l.Name, len(l.Name), nameMost)
		}
		if valueMost > 0 && len(l.Value) > valueMost && marked(l.Value) < 0 {
			return limitErrorf("label_value_length_limit exceeded (metric: %.50s, label name: %.50s, value: %.50q, length: %d, limit: %d)",
				name, l.Name, l.Value, len(l.Value), valueMost)
		}
		return nil
	})
}

// IsTooLong reports whether a label's value exceeds the limit.
func (r *Rules) IsTooLong(value string) bool {
	most := int(r.Scrape.LabelValueLengthLimit)
	return most > 0 && len(value) > most
}
