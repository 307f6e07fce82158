// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinality

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v2"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/internal/inorder"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// Recommendations are the rules that would save most series, found by estimating the effect of removing labels. They
// aggregate: the output is the sum over the removed labels, so queries that do not use these give the same results as
// before. docs/design/047 has what is never recommended.

const (
	lookedThrough  = 50   // metrics with the most series
	labelsTried    = 6    // of a metric, those with the most values
	labelsTogether = 3    // removed by one rule
	fewValues      = 20   // of a label: not worth removing it
	worthRemoving  = 0.2  // of a metric's series
	worthARule     = 0.01 // of all series
	fewSeries      = 100  // not worth a rule
	nearlyAll      = 0.9  // of what more labels would save
	metricsInARule = 20
	mostRules      = 20
)

// aloneCut ends names that were too long to keep.
const aloneCut = "…"

type (
	recommendationsJSON struct {
		saving

		Processor string           `json:"processor"`
		Mode      string           `json:"mode"`
		Before    inspect.Estimate `json:"before"`
		After     inspect.Estimate `json:"after"`
		Rules     []recommendation `json:"rules"`
		YAML      string           `json:"yaml"`
	}

	// recommendation is one rule with its effect.
	recommendation struct {
		saving

		Name    string           `json:"name"`
		Metrics []string         `json:"metrics"`
		Labels  []string         `json:"labels"`
		Before  inspect.Estimate `json:"before"`
		After   inspect.Estimate `json:"after"`
		Gauges  bool             `json:"gauges"` // some metrics are gauges, for which a sum may be wrong
		Note    string           `json:"note"`
		YAML    string           `json:"yaml"`
	}

	// saving is the number of series saved and its share of all. It may be known although what remains is too little to
	// be estimated.
	saving struct {
		Saved      inspect.Estimate `json:"saved"`
		Ratio      float64          `json:"saved_ratio"`
		RatioError float64          `json:"saved_ratio_error"`
	}
)

// savingOf returns a number of series together with its share of all.
func savingOf(saved, all inspect.Estimate) saving {
	s := saving{Saved: saved}
	if all.Value > 0 {
		s.Ratio = min(1, saved.Value/all.Value)
		s.RatioError = math.Hypot(saved.Error, s.Ratio*all.Error) / all.Value
	}
	return s
}

// saves returns the number of series that the rule saves.
func (r *recommendation) saves() float64 { return r.Before.Value - r.After.Value }

// Recommend answers with the rules that would save most.
func (v *View) Recommend(r *http.Request) (any, error) {
	s, err := v.processor(r)
	if err != nil {
		return nil, err
	}
	n, err := answer.Whole(r, "n", 3, 1, mostRules)
	if err != nil {
		return nil, err
	}
	o := s.Cardinality.Overview()
	out := recommendationsJSON{Processor: s.Name(), Mode: o.Mode, Rules: []recommendation{}}
	out.Before = inspect.Estimate{Value: float64(o.Series) + o.Rejected.Value, Error: o.Rejected.Error}
	all := together(savings(s.Cardinality, &o, out.Before.Value))
	names := namesOf(&o)
	out.After = out.Before
	for i := range all[:min(n, len(all))] {
		rule := &all[i]
		// All rules together cannot save more than there is.
		saved := inspect.Estimate{Value: min(rule.saves(), out.After.Value), Error: math.Round(math.Hypot(rule.Before.Error, rule.After.Error))}
		rule.saving = savingOf(saved, out.Before)
		rule.Name = names.of(rule)
		if rule.YAML, err = rule.yaml(o.IdleTimeout); err != nil {
			return nil, err
		}
		out.After = out.After.Plus(inspect.Estimate{Value: -saved.Value, Error: saved.Error})
		out.Saved = out.Saved.Plus(saved)
		out.Rules = append(out.Rules, *rule)
	}
	out.saving = savingOf(out.Saved, out.Before)
	out.YAML = out.yaml(cmp.Or(shorter(o.IdleTimeout), time.Minute))
	return out, nil
}

// savings estimates for each metric the effect of removing some of its labels, and returns the rules that are worth it.
func savings(c inspect.Cardinality, o *inspect.CardinalityOverview, total float64) (all []recommendation) {
	top := c.Top(inspect.TopQuery{Of: inspect.TopMetrics, By: inspect.BySeries, N: lookedThrough})
	worth := max(fewSeries, worthARule*total)
	for i := range top.Rows {
		row := &top.Rows[i]
		if row.Series.Value+row.Rejected.Value < worth || !aggregates(row) {
			continue
		}
		if r, ok := less(c, o, row.Name); ok && r.saves() >= worth {
			r.Gauges = row.Type == "gauge"
			all = append(all, r)
		}
	}
	return all
}

// aggregates reports whether sums of the series of a metric are meaningful. Joins use series of `_info`, and quantiles
// cannot be added.
func aggregates(row *inspect.Row) bool {
	return row.Type != "summary" && row.Name != "target_info" && !strings.HasSuffix(row.Name, "_info") && !strings.HasSuffix(row.Name, aloneCut)
}

// less finds the labels to remove from a metric: as few as possible that save nearly as much as more would.
func less(c inspect.Cardinality, o *inspect.CardinalityOverview, metric string) (best recommendation, ok bool) {
	detail, there := c.Metric(metric)
	if !there {
		return best, false
	}
	var labels []string
	inorder.Sort(detail.Labels, func(a, b inspect.Row) int { return cmp.Compare(b.Values.Value, a.Values.Value) })
	for i := range detail.Labels {
		if l := &detail.Labels[i]; l.Values.Value > fewValues && removable(l.Name, o) && len(labels) < labelsTried {
			labels = append(labels, l.Name)
		}
	}
	var tried []recommendation
	try := func(drop []string) {
		p, err := c.WhatIf(inspect.Change{Metric: metric, Drop: drop})
		if err != nil || math.Hypot(p.Before.Error, p.After.Error) > p.Before.Value-p.After.Value || p.Before.Value-p.After.Value < worthRemoving*p.Before.Value {
			return // the metric is gone, the estimate is too uncertain, or the saving is too small
		}
		tried = append(tried, recommendation{Metrics: []string{metric}, Labels: slices.Sorted(slices.Values(drop)), Before: p.Before, After: p.After, Note: p.Note})
	}
	for i := range labels {
		try(labels[i : i+1])
	}
	for n := 2; n <= min(labelsTogether, len(labels)); n++ { // for labels that vary together
		try(labels[:n])
	}
	most := 0.0
	for i := range tried {
		most = max(most, tried[i].saves())
	}
	for i := range tried {
		r := &tried[i]
		if r.saves() >= nearlyAll*most && (!ok || len(r.Labels) < len(best.Labels) || len(r.Labels) == len(best.Labels) && r.saves() > best.saves()) {
			best, ok = *r, true
		}
	}
	return best, ok
}

// removable reports whether a rule may remove a label. Labels that identify targets and tenants stay, and so do those
// of the processor itself.
func removable(label string, o *inspect.CardinalityOverview) bool {
	return !IsIdentity(label) && !slices.Contains(o.TenantLabels, label) && !strings.HasSuffix(label, aloneCut) &&
		!strings.HasPrefix(label, "otel.") && !strings.Contains(label, ":") && label != wordMetric && label != "tenant"
}

// together merges rules that remove the same labels, and sorts those first that save most.
func together(all []recommendation) (rules []recommendation) {
	inorder.Sort(all, func(a, b recommendation) int { return cmp.Compare(b.saves(), a.saves()) })
	for i := range all {
		one := &all[i]
		at := slices.IndexFunc(rules, func(r recommendation) bool {
			return slices.Equal(r.Labels, one.Labels) && r.Gauges == one.Gauges && len(r.Metrics) < metricsInARule
		})
		if at < 0 {
			rules = append(rules, *one)
			continue
		}
		r := &rules[at]
		r.Metrics = append(r.Metrics, one.Metrics...)
		r.Before, r.After = r.Before.Plus(one.Before), r.After.Plus(one.After)
		r.Note = cmp.Or(r.Note, one.Note)
	}
	for i := range rules {
		slices.Sort(rules[i].Metrics)
	}
	inorder.Sort(rules, func(a, b recommendation) int { return cmp.Compare(b.saves(), a.saves()) })
	return rules
}

// ruleNames are the names in use.
type ruleNames map[string]bool

func namesOf(o *inspect.CardinalityOverview) ruleNames {
	taken := ruleNames{}
	for i := range o.Limits {
		taken[o.Limits[i].Rule] = true
	}
	return taken
}

func (n ruleNames) of(r *recommendation) string {
	base := "without_" + strings.Join(r.Labels, "_")
	name := base
	for i := 2; n[name]; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	n[name] = true
	return name
}

// yaml returns the rule as YAML.
func (r *recommendation) yaml(idle time.Duration) (string, error) {
	aggregate := yaml.MapSlice{{Key: "without", Value: r.Labels}}
	if interval := shorter(idle); interval > 0 {
		aggregate = append(aggregate, yaml.MapItem{Key: "interval", Value: interval.String()})
	}
	text, err := yaml.Marshal([]yaml.MapSlice{{
		{Key: "name", Value: r.Name},
		{Key: "match", Value: yaml.MapSlice{{Key: wordMetric, Value: pattern(r.Metrics)}}},
		{Key: "aggregate", Value: aggregate},
	}})
	if err != nil {
		return "", fmt.Errorf("cannot write the rule: %w", err)
	}
	return string(text), nil
}

// pattern returns a pattern that matches these metrics and no others.
func pattern(metrics []string) string {
	plain := len(metrics) == 1 && !strings.Contains(metrics[0], "*") && !strings.HasPrefix(metrics[0], "regex:") && !strings.HasPrefix(metrics[0], "not:")
	if plain {
		return metrics[0]
	}
	var quoted []string
	for _, m := range metrics {
		quoted = append(quoted, regexp.QuoteMeta(m))
	}
	return "regex:" + strings.Join(quoted, "|")
}

// shorter returns the interval of rules if it has to be shorter than the default, since it must not be longer than the
// idle timeout. Otherwise it returns 0.
func shorter(idle time.Duration) time.Duration {
	if idle < time.Minute {
		return idle
	}
	return 0
}

// yaml returns all rules, ready to be pasted, with comments on their effect.
func (j *recommendationsJSON) yaml(interval time.Duration) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "# "+format+"\n", args...) }
	if len(j.Rules) == 0 {
		line("No rule of %s would save enough of its %s series.", oneLine(j.Processor), prose.Short(j.Before.Value))
		return b.String()
	}
	these := fmt.Sprintf("These %d rules save", len(j.Rules))
	if len(j.Rules) == 1 {
		these = "This rule saves"
	}
	line("%s about %.0f %%%s of the %s series of %s, those that limits keep out included.", these, 100*j.Ratio, give(100*j.RatioError, " %"), prose.Short(j.Before.Value), oneLine(j.Processor))
	line("Sums over the labels that go stay the same, and come every %s: rate() needs twice that, or set aggregate::interval.", interval)
	line("Queries that ask by these labels would change:")
	for i := range j.Rules {
		r := &j.Rules[i]
		names := make([]string, len(r.Metrics))
		for i, m := range r.Metrics {
			names[i] = oneLine(m)
		}
		labels := make([]string, len(r.Labels))
		for i, l := range r.Labels {
			labels[i] = oneLine(l)
		}
		line("  %s by %s: about %s%s fewer of %s series", strings.Join(names, ", "), strings.Join(labels, ", "), prose.Short(r.Saved.Value), give(r.Saved.Error, ""), prose.Short(r.Before.Value))
		if r.Gauges {
			line("    Gauges become sums; for something else set aggregate::outputs to one of min, max, avg, last.")
		}
	}
	if j.Mode == "dry_run" {
		line("The processor is in a dry run: nothing changes until it has mode: enforce.")
	}
	b.WriteString("rules:\n")
	for i := range j.Rules { // indented as in our examples: lists of two indentations cannot be one
		b.WriteString("  " + strings.ReplaceAll(strings.TrimSuffix(j.Rules[i].YAML, "\n"), "\n", "\n  ") + "\n")
	}
	return b.String()
}

// give formats the error of a number, "" if it is negligible.
func give(e float64, unit string) string {
	if e < 0.5 {
		return ""
	}
	return " ± " + prose.Short(math.Round(e)) + unit
}

// oneLine quotes a name that could end a comment.
func oneLine(name string) string {
	name = prose.Name(name)
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}
