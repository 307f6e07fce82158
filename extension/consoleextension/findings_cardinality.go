// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"fmt"
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
		f.Severity, f.Title = severityError, fmt.Sprintf("%s is full: %d series of %d", s.name(), o.Series, o.MaxSeries)
		f.Detail = "New series of all metrics are kept out. Series that were let in are not affected."
		f.Next = "Find what explodes and limit it by a rule, or raise `memory.max_series`."
		add(f)
	}
	told := map[string]bool{}
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
		told[culprit.name] = true
		f.Severity = severityWarning
		f.Title = fmt.Sprintf("Rule %s is at its limit: %d of %d %s", l.Rule, l.Used, l.Max, l.What)
		f.Detail = "Series that were let in are not affected."
		if l.Rejected.Value >= 1 {
			f.Detail = fmt.Sprintf("About %.0f further series are kept out. %s", l.Rejected.Value, f.Detail)
		}
		f.Next = "Find the label that explodes, and drop or collapse it; or raise the limit."
		if culprit.name != "" {
			f.Title += ": " + culprit.String()
		}
		if culprit.name != "" && !isIdentity(culprit.name) {
			f.Next = fmt.Sprintf("Drop or collapse label %s, if nobody needs it; or raise the limit.", culprit.name)
		}
		if o.Mode == "dry_run" {
			f.Severity, f.Next = severityInfo, "Nothing is kept out in a dry run; see whether it is what you want, then set `mode: enforce`."
		}
		add(f)
	}
	idFindings(s, told, add)
}

const (
	// manyIDs is how many values a label that looks like an ID has before it is worth a word, and idsTold how many such labels
	// are.
	manyIDs = 1000
	idsTold = 3
)

// idFindings are about labels that grow without an end, before a limit says so.
func idFindings(s *source, told map[string]bool, add func(finding)) {
	top := s.Cardinality.Top(inspect.TopQuery{Of: inspect.TopLabels, By: inspect.ByValues, N: idsTold + len(identities)})
	n := 0
	for i := range top.Rows {
		row := &top.Rows[i]
		name := cut(row.Name, maxShownName)
		if !row.IDLike || isIdentity(row.Name) || row.Values.Value < manyIDs || told[name] {
			continue
		}
		if n++; n > idsTold {
			return
		}
		add(finding{
			Severity: severityWarning, Subject: s.node(), View: viewCardinality,
			Title:  fmt.Sprintf("Label %s looks like an ID: about %.0f values, nearly one for each series that has it", name, row.Values.Value),
			Detail: fmt.Sprintf("It makes about %.0f of %.0f series.", row.Series.Value, top.Total),
			Next:   "See which metrics have it; drop or collapse it, if nobody needs it.",
			Query:  map[string]string{wordProcessor: s.name(), "of": inspect.TopPairs, "label": row.Name},
		})
	}
}

// A culprit is the label whose values fill a limit.
type culprit struct {
	name, metric string
	values       float64
}

func (c culprit) String() string {
	if c.values == 0 {
		return "label " + c.name
	}
	return fmt.Sprintf("label %s of %s has about %.0f values", c.name, c.metric, c.values)
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
	top := s.Cardinality.Top(inspect.TopQuery{Of: inspect.TopLabels, By: inspect.ByValues, Metric: metric, N: maxPage})
	for i := range top.Rows {
		if row := &top.Rows[i]; row.Values.Value > 1 && (l.Label == row.Name || l.Label == "" && !isIdentity(row.Name)) {
			return culprit{cut(row.Name, maxShownName), cut(metric, maxShownName), row.Values.Value}
		}
	}
	return culprit{name: cut(l.Label, maxShownName)}
}
