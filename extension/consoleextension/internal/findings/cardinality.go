// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"maps"
	"slices"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/cardinality"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inspect"
)

const dryRun = "dry_run"

// cardinality reports limits that are reached.
func (f *finder) cardinality(s *sources.Source) {
	o := s.Cardinality.Overview()
	if o.RulesFault != "" {
		f.add(Finding{
			Severity: severityError, Subject: s.Node(), View: viewCardinality, Query: map[string]string{sources.Processor: s.Name()},
			Title: "The rules file of " + s.Name() + " cannot be used: earlier rules are in force", Detail: o.RulesFault,
			Next: "Correct the file; it is reread automatically.",
		})
	}
	if o.MaxSeries > 0 && o.Series >= o.MaxSeries {
		f.add(full(s, &o))
	}
	reported := map[string]bool{}
	reached := 0
	for i := range o.Limits {
		l := &o.Limits[i]
		if l.Max <= 0 || l.Used < l.Max {
			continue
		}
		if reached++; reached > maxFindings {
			break // finding the label takes a while, and nobody would read it
		}
		culprit := explosion(s, &o, l)
		reported[culprit.name] = true
		f.add(atLimit(s, &o, l, culprit))
	}
	f.ids(s, reported)
}

// full is the finding for a processor that admits no new series.
func full(s *sources.Source, o *inspect.CardinalityOverview) Finding {
	one := Finding{
		Severity: severityError, Subject: s.Node(), View: viewCardinality, Query: map[string]string{sources.Processor: s.Name()},
		Title:  fmt.Sprintf("%s is full: %s series of %s", s.Name(), prose.Count(o.Series), prose.Count(o.MaxSeries)),
		Detail: "New series of all metrics are kept out. Series already admitted are not affected.",
		Next:   "Find what explodes and limit it by a rule, or raise `memory.max_series`.",
	}
	if o.Mode == dryRun {
		one.Severity, one.Detail = severityInfo, "Nothing is kept out in a dry run. With `mode: enforce` new series of all metrics would be."
	}
	return one
}

// atLimit is the finding for a rule that admits no new series, with the label that fills it.
func atLimit(s *sources.Source, o *inspect.CardinalityOverview, l *inspect.Limit, culprit culprit) Finding {
	one := Finding{
		Severity: severityWarning, Subject: s.Node(), View: viewCardinality, Query: map[string]string{sources.Processor: s.Name()},
		Title:  fmt.Sprintf("Rule %s is at its limit: %s of %s %s", l.Rule, prose.Count(l.Used), prose.Count(l.Max), l.What),
		Detail: "Series already admitted are not affected.",
		Next:   "Find the label that explodes, and drop or collapse it; or raise the limit.",
	}
	if l.Rejected.Value >= 1 {
		one.Detail = fmt.Sprintf("About %s further series are kept out. %s", prose.Short(l.Rejected.Value), one.Detail)
	}
	if culprit.name != "" {
		one.Title += ": " + culprit.String()
	}
	if culprit.name != "" && !cardinality.IsIdentity(culprit.name) {
		one.Next = fmt.Sprintf("Drop or collapse label %s, if nobody needs it; or raise the limit.", culprit.name)
	}
	if o.Mode == dryRun {
		one.Severity, one.Next = severityInfo, "Nothing is kept out in a dry run; see whether it is what you want, then set `mode: enforce`."
	}
	return one
}

const (
	// manyIDs is the number of values from which on a label that looks like an ID is reported, and idsTold the maximum
	// number of such labels.
	manyIDs = 1000
	idsTold = 3
)

// ids reports labels that grow without end, before a limit is reached.
func (f *finder) ids(s *sources.Source, reported map[string]bool) {
	top := s.Cardinality.Top(inspect.TopQuery{Of: inspect.TopLabels, By: inspect.ByValues, N: idsTold + len(cardinality.Identities)})
	n := 0
	for i := range top.Rows {
		row := &top.Rows[i]
		name := prose.Name(row.Name)
		if !row.IDLike || cardinality.IsIdentity(row.Name) || row.Values.Value < manyIDs || reported[name] {
			continue
		}
		if n++; n > idsTold {
			return
		}
		f.add(Finding{
			Severity: severityWarning, Subject: s.Node(), View: viewCardinality,
			Title:  fmt.Sprintf("Label %s looks like an ID: about %s values, nearly one for each series that has it", name, prose.Short(row.Values.Value)),
			Detail: fmt.Sprintf("It is on about %s of %s series.", prose.Short(row.Series.Value), prose.Short(max(top.Total, row.Series.Value))),
			Next:   "See which metrics have it; drop or collapse it, if nobody needs it.",
			Query:  map[string]string{sources.Processor: s.Name(), "of": inspect.TopPairs, "label": row.Name},
		})
	}
}

// A culprit is the label whose values fill a limit.
type culprit struct {
	name, metric string
	values       float64 // 0 if that is not known well enough
}

func (c culprit) String() string {
	switch {
	case c.metric == "":
		return "label " + c.name
	case c.values == 0:
		return fmt.Sprintf("label %s of %s", c.name, c.metric)
	}
	return fmt.Sprintf("label %s of %s has about %s values", c.name, c.metric, prose.Short(c.values))
}

// explosion returns the label with the most values in the metric that the limit rejected last. Labels that identify
// targets are excluded, unless the limit is on that label. The metric is not known before the limit has rejected a
// series, because only the processor knows what a rule matches.
func explosion(s *sources.Source, o *inspect.CardinalityOverview, l *inspect.Limit) culprit {
	at := slices.IndexFunc(o.Rejects, func(r inspect.Reject) bool { return r.Rule == l.Rule })
	if at < 0 {
		return culprit{name: prose.Name(l.Label)}
	}
	metric := o.Rejects[at].Metric
	name := l.Label
	if name == "" {
		name = mostVaried(o.Rejects, metric)
	}
	top := s.Cardinality.Top(inspect.TopQuery{Of: inspect.TopLabels, By: inspect.ByValues, Metric: metric, N: answer.MaxRows})
	for i := range top.Rows {
		row := &top.Rows[i]
		if row.Values.Value <= 1 || name != "" && row.Name != name || cardinality.IsIdentity(row.Name) && row.Name != l.Label {
			continue
		}
		found := culprit{prose.Name(row.Name), prose.Name(metric), row.Values.Value}
		if row.Values.Error > row.Values.Value/2 {
			found.values = 0
		}
		return found
	}
	if name == "" {
		return culprit{}
	}
	return culprit{name: prose.Name(name), metric: prose.Name(metric)}
}

// mostVaried returns the label in which rejected series of a metric differ most. Their labels are known, while the
// number of a label's values is an estimate, and a bad one for a metric whose series are rejected.
func mostVaried(rejects []inspect.Reject, metric string) (name string) {
	values := map[string]map[string]bool{}
	for i := range rejects {
		for _, l := range rejects[i].Labels {
			if rejects[i].Metric != metric || cardinality.IsIdentity(l.Name) {
				continue
			}
			if values[l.Name] == nil {
				values[l.Name] = map[string]bool{}
			}
			values[l.Name][l.Value] = true
		}
	}
	most := 1
	for _, label := range slices.Sorted(maps.Keys(values)) {
		if n := len(values[label]); n > most {
			most, name = n, label
		}
	}
	return name
}
