// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"fmt"
	"maps"
	"slices"

	"github.com/godwit-otel/godwit/internal/inspect"
)

func cardinalityFindings(s *source, add func(finding)) {
	o := s.Cardinality.Overview()
	f := finding{Subject: s.node(), View: viewCardinality, Query: map[string]string{wordProcessor: s.name()}}
	if o.RulesFault != "" {
		f.Severity, f.Title, f.Detail = severityError, "The rules file of "+s.name()+" cannot be used: earlier rules are in force", o.RulesFault
		f.Next = "Correct the file; it is read again by itself."
		add(f)
	}
	if o.MaxSeries > 0 && o.Series >= o.MaxSeries {
		f.Severity, f.Title = severityError, fmt.Sprintf("%s is full: %s series of %s", s.name(), grouped(o.Series), grouped(o.MaxSeries))
		f.Detail = "New series of all metrics are kept out. Series already admitted are not affected."
		f.Next = "Find what explodes and limit it by a rule, or raise `memory.max_series`."
		if o.Mode == modeDryRun {
			f.Severity, f.Detail = severityInfo, "Nothing is kept out in a dry run. With `mode: enforce` new series of all metrics would be."
		}
		add(f)
	}
	reported := map[string]bool{}
	reached := 0
	for i := range o.Limits {
		l := &o.Limits[i]
		if l.Max <= 0 || l.Used < l.Max {
			continue
		}
		if reached++; reached > maxFindings {
			break // to find out what explodes takes a while, and nobody would see it
		}
		culprit := explosion(s, &o, l)
		reported[culprit.name] = true
		f.Severity = severityWarning
		f.Title = fmt.Sprintf("Rule %s is at its limit: %s of %s %s", l.Rule, grouped(l.Used), grouped(l.Max), l.What)
		f.Detail = "Series already admitted are not affected."
		if l.Rejected.Value >= 1 {
			f.Detail = fmt.Sprintf("About %s further series are kept out. %s", short(l.Rejected.Value), f.Detail)
		}
		f.Next = "Find the label that explodes, and drop or collapse it; or raise the limit."
		if culprit.name != "" {
			f.Title += ": " + culprit.String()
		}
		if culprit.name != "" && !isIdentity(culprit.name) {
			f.Next = fmt.Sprintf("Drop or collapse label %s, if nobody needs it; or raise the limit.", culprit.name)
		}
		if o.Mode == modeDryRun {
			f.Severity, f.Next = severityInfo, "Nothing is kept out in a dry run; see whether it is what you want, then set `mode: enforce`."
		}
		add(f)
	}
	idFindings(s, reported, add)
}

const (
	// manyIDs is how many values a label that looks like an ID has before it is worth a word, and idsTold how many such labels
	// are.
	manyIDs = 1000
	idsTold = 3
)

// idFindings are about labels that grow without an end, before a limit says so.
func idFindings(s *source, reported map[string]bool, add func(finding)) {
	top := s.Cardinality.Top(inspect.TopQuery{Of: inspect.TopLabels, By: inspect.ByValues, N: idsTold + len(identities)})
	n := 0
	for i := range top.Rows {
		row := &top.Rows[i]
		name := cut(row.Name, maxShownName)
		if !row.IDLike || isIdentity(row.Name) || row.Values.Value < manyIDs || reported[name] {
			continue
		}
		if n++; n > idsTold {
			return
		}
		add(finding{
			Severity: severityWarning, Subject: s.node(), View: viewCardinality,
			Title:  fmt.Sprintf("Label %s looks like an ID: about %s values, nearly one for each series that has it", name, short(row.Values.Value)),
			Detail: fmt.Sprintf("It is on about %s of %s series.", short(row.Series.Value), short(max(top.Total, row.Series.Value))),
			Next:   "See which metrics have it; drop or collapse it, if nobody needs it.",
			Query:  map[string]string{wordProcessor: s.name(), "of": inspect.TopPairs, "label": row.Name},
		})
	}
}

// A culprit is the label whose values fill a limit.
type culprit struct {
	name, metric string
	values       float64 // 0 if that is not known well enough to be said
}

func (c culprit) String() string {
	switch {
	case c.metric == "":
		return "label " + c.name
	case c.values == 0:
		return fmt.Sprintf("label %s of %s", c.name, c.metric)
	}
	return fmt.Sprintf("label %s of %s has about %s values", c.name, c.metric, short(c.values))
}

// explosion finds the label with the most values of the metric that the limit rejected last, unless that is what targets are
// known by and the limit is not about it. It is not known before the
// limit has rejected something: what a rule matches is the processor's business.
func explosion(s *source, o *inspect.CardinalityOverview, l *inspect.Limit) culprit {
	at := slices.IndexFunc(o.Rejects, func(r inspect.Reject) bool { return r.Rule == l.Rule })
	if at < 0 {
		return culprit{name: cut(l.Label, maxShownName)}
	}
	metric := o.Rejects[at].Metric
	name := l.Label
	if name == "" {
		name = mostVaried(o.Rejects, metric)
	}
	top := s.Cardinality.Top(inspect.TopQuery{Of: inspect.TopLabels, By: inspect.ByValues, Metric: metric, N: maxPage})
	for i := range top.Rows {
		row := &top.Rows[i]
		if row.Values.Value <= 1 || name != "" && row.Name != name || isIdentity(row.Name) && row.Name != l.Label {
			continue
		}
		found := culprit{cut(row.Name, maxShownName), cut(metric, maxShownName), row.Values.Value}
		if row.Values.Error > row.Values.Value/2 {
			found.values = 0
		}
		return found
	}
	if name == "" {
		return culprit{}
	}
	return culprit{name: cut(name, maxShownName), metric: cut(metric, maxShownName)}
}

// mostVaried is the label in which rejected series of a metric differ most. That they do is seen, while how many values a label
// has is estimated, and badly of a metric whose series are kept out.
func mostVaried(rejects []inspect.Reject, metric string) (name string) {
	values := map[string]map[string]bool{}
	for i := range rejects {
		for _, l := range rejects[i].Labels {
			if rejects[i].Metric != metric || isIdentity(l.Name) {
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
