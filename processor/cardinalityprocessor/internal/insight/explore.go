// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/inorder"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/ident"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/stats"
)

// Top implements inspect.Cardinality.
func (i inspection) Top(q inspect.TopQuery) inspect.Top {
	s := i.snapshot()
	total := i.total(&s)
	var rows []inspect.Row
	switch q.Of {
	case inspect.TopLabels:
		rows = i.labels(&s, q.Metric)
		total += i.rejected().Value // rejected series count, too
	case inspect.TopPairs:
		rows = i.pairs(&s, q)
	case inspect.TopGroups:
		rows = i.groups(&s, q)
		whole := map[string]float64{} // by rule
		for j := range rows {
			whole[rows[j].Name] += rows[j].Series.Value
			total = max(total, whole[rows[j].Name])
		}
	default:
		sampled := i.sampled()
		for _, m := range s.Metrics {
			rows = append(rows, i.metric(&m, &s, sampled))
		}
	}
	for j := range rows { // an estimated part may exceed the whole
		total = max(total, rows[j].Series.Value)
	}
	rows = slices.DeleteFunc(rows, func(r inspect.Row) bool {
		return !strings.Contains(r.Name, q.Match) && !strings.Contains(r.Value, q.Match)
	})
	by := func(r *inspect.Row) float64 {
		switch q.By {
		case inspect.ByNew:
			return r.NewPerMinute.Value
		case inspect.ByGone:
			return r.GonePerMinute.Value
		case inspect.ByPoints:
			return r.PointsPerSecond.Value
		case inspect.ByRejected:
			return r.Rejected.Value
		case inspect.ByValues:
			return r.Values.Value
		default:
			return r.Series.Value
		}
	}
	inorder.Sort(rows, func(a, b inspect.Row) int { return cmp.Compare(by(&b), by(&a)) })
	n := min(max(q.N, 1), maxShown, len(rows))
	return inspect.Top{Total: math.Round(total), Rows: rows[:n], More: n < len(rows)}
}

// perMinute converts a count since a time to a rate.
func (i inspection) perMinute(n float64, since time.Time) inspect.Estimate {
	minutes := max(i.g.Now().Sub(since).Minutes(), 1.0/60)
	return inspect.Estimate{Value: n / minutes}
}

// perSecond converts the points that were counted in some batches to a rate.
func (i inspection) perSecond(m *stats.Metric, since time.Time) inspect.Estimate {
	if m.Counts == 0 {
		return inspect.Estimate{}
	}
	rate := float64(m.Points) / max(i.g.Now().Sub(since).Seconds(), 1)
	return inspect.Estimate{Value: rate, Error: rate / math.Sqrt(float64(m.Counts))}
}

// labelsOfMetrics is the number of values by metric and label.
type labelsOfMetrics map[string]map[string]int

// sampled returns it for the sample, which is all that is known of metrics that are not among the largest.
func (i inspection) sampled() labelsOfMetrics {
	if i.g.Book == nil {
		return nil
	}
	all, _ := i.g.Book.Sample()
	values, seen := labelsOfMetrics{}, map[[3]string]bool{}
	for _, e := range all {
		if values[e.Metric] == nil {
			values[e.Metric] = map[string]int{}
		}
		for _, l := range labelsOf(e) {
			if key := [3]string{e.Metric, l.Name, l.Value}; !seen[key] {
				seen[key] = true
				values[e.Metric][l.Name]++
			}
		}
	}
	return values
}

func (i inspection) metric(m *stats.Metric, s *stats.Snapshot, sampled labelsOfMetrics) inspect.Row {
	row := inspect.Row{
		Name: m.Name, Unit: m.Unit, Series: give(m.Series, m.SeriesError),
		Rejected: give(m.Rejected, m.RejectedError), NewPerMinute: i.perMinute(float64(m.Births), s.Since),
	}
	row.NewPerMinute.Error = i.perMinute(m.BirthsError, s.Since).Value
	row.Type, row.Temporality = nameOfKind(m.Kind)
	if minutes := s.Window.Minutes(); minutes > 0 {
		row.GonePerMinute = inspect.Estimate{Value: m.Gone / minutes, Error: m.GoneError / minutes}
	}
	row.PointsPerSecond = i.perSecond(m, s.Since)
	most := 0.0
	for _, l := range m.Labels {
		if l.Values > most {
			most, row.WorstLabel = l.Values, l.Name
		}
	}
	if len(m.Labels) == 0 {
		row.WorstLabel = sampled.worst(m.Name)
	}
	row.Limit, row.Used = i.tightest(m.Name)
	return row
}

// worst is the label of a metric with the most values.
func (all labelsOfMetrics) worst(metric string) (worst string) {
	values := all[metric]
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if worst == "" || values[name] > values[worst] {
			worst = name
		}
	}
	return worst
}

// nameOfKind is the inverse of amount.KindOf.
func nameOfKind(kind uint64) (name, temporality string) {
	name = strings.ToLower(pmetric.MetricType(kind & 0xff).String())
	if t := pmetric.AggregationTemporality(kind >> 32); t != pmetric.AggregationTemporalityUnspecified {
		temporality = strings.ToLower(t.String())
	}
	return name, temporality
}

// tightest is the limit with the least room for a metric, and how far it is used: by the metric, or by all that share
// it.
func (i inspection) tightest(metric string) (limit, used int64) {
	g := i.g
	g.Rules.RLock()
	defer g.Rules.RUnlock()
	least := math.Inf(1)
	for _, l := range g.Rules.Policy.Limits {
		if l.Max == 0 || l.Name == policy.RuleTotal || !l.Match.Metric.Fits(metric) {
			continue
		}
		var group uint64
		switch {
		case len(l.GroupBy) == 1 && l.GroupBy[0].Kind == policy.FromMetric:
			group = ident.Mix(0, g.Hash.Text(metric))
		case len(l.GroupBy) != 0:
			continue
		}
		key := ident.Mix(l.Series.Key, group)
		n := g.Limiter.Groups.MembersOf(key)
		if room := float64(l.Max-n) / float64(l.Max); room < least {
			least, limit, used = room, int64(l.Max), int64(n)
		}
	}
	return limit, used
}

// labels lists those of all metrics, or of one.
func (i inspection) labels(s *stats.Snapshot, metric string) (rows []inspect.Row) {
	if metric == "" {
		having, sampled := map[string]int{}, i.sampled()
		for _, m := range s.Metrics {
			for _, l := range m.Labels {
				having[l.Name]++
			}
			if len(m.Labels) > 0 {
				delete(sampled, m.Name)
			}
		}
		for _, values := range sampled {
			for name := range values {
				having[name]++
			}
		}
		for _, l := range s.Labels {
			row := label(l.WithoutLabel)
			row.NewPerMinute = i.perMinute(float64(l.Births), s.Since)
			row.Metrics = having[l.Name]
			rows = append(rows, row)
		}
		return rows
	}
	for _, m := range s.Metrics {
		if m.Name == metric {
			for _, l := range m.Labels {
				rows = append(rows, label(l))
			}
		}
	}
	if len(rows) > 0 || i.g.Book == nil {
		return rows
	}
	all, factor := i.g.Book.Sample() // its labels are not counted
	values, carrying := map[string]map[string]int{}, map[string]float64{}
	for _, e := range all {
		for _, l := range labelsOf(e) {
			if e.Metric != metric {
				break
			}
			if values[l.Name] == nil {
				values[l.Name] = map[string]int{}
			}
			values[l.Name][l.Value]++
			carrying[l.Name] += factor
		}
	}
	for name, counts := range values {
		n := stats.Distinct(counts, factor)
		row := label(stats.WithoutLabel{Name: name, Series: carrying[name], Values: n.Value})
		row.Series, row.Values.Error = sampled(carrying[name], factor), math.Ceil(n.Error)
		rows = append(rows, row)
	}
	return rows
}

// idLike is the ratio of values to series from which on a label looks like an ID.
const idLike = 0.5

func label(l stats.WithoutLabel) inspect.Row {
	return inspect.Row{
		Name: l.Name, Series: give(l.Series, l.Series*l.Error+l.Missing), Values: give(l.Values, l.Values*l.Error+l.Missing),
		IDLike: l.Values > 50 && l.Values > idLike*l.Series,
	}
}

func (i inspection) pairs(s *stats.Snapshot, q inspect.TopQuery) (rows []inspect.Row) {
	add := func(name, value string, n float64) {
		if q.Label == "" || q.Label == name {
			rows = append(rows, inspect.Row{Name: name, Value: value, Series: sampled(n, s.Factor)})
		}
	}
	if q.Metric == "" {
		for _, p := range s.Pairs {
			add(p.Key, p.Value, p.Series)
		}
		return rows
	}
	if i.g.Book == nil {
		return nil
	}
	all, factor := i.g.Book.Sample()
	counts := map[inspect.Label]float64{}
	for _, e := range all {
		for _, l := range labelsOf(e) {
			if e.Metric == q.Metric {
				counts[l] += factor
			}
		}
	}
	for l, n := range counts {
		add(l.Name, l.Value, n)
	}
	return rows
}

// sampled extrapolates a number of series in the sample.
func sampled(n, factor float64) inspect.Estimate {
	if factor <= 1 {
		return inspect.Estimate{Value: n}
	}
	return inspect.Estimate{Value: n, Error: math.Round(math.Sqrt(n * factor))}
}

// groups lists the groups of the rules, which are counted exactly, or the values of a label.
func (i inspection) groups(s *stats.Snapshot, q inspect.TopQuery) (rows []inspect.Row) {
	if q.Label != "" {
		return i.pairs(s, q)
	}
	policy := i.g.Rules.Current()
	for _, g := range i.g.Limiter.Groups.Grouped(i.g.Limiter.Now().Epoch() / moment.IdleEpochs) {
		var names []string
		for _, l := range g.Group {
			names = append(names, l.Name+"="+l.Value)
		}
		rows = append(rows, inspect.Row{
			Name: g.Rule, Value: strings.Join(names, " "), Series: exactly(int64(g.Used)),
			NewPerMinute: i.perMinute(float64(g.Births), s.Since), GonePerMinute: i.perMinute(float64(g.Gone), s.Since),
			Used: int64(g.Used),
		})
		if l := policy.Named[g.Rule]; l != nil {
			rows[len(rows)-1].Limit = int64(l.TermsIn(g.Group).Max)
		}
	}
	return rows
}

// Metric implements inspect.Cardinality. For metrics that are not among the largest it returns what the sample has.
func (i inspection) Metric(name string) (detail inspect.MetricDetail, ok bool) {
	if i.g.Book == nil {
		return detail, false
	}
	s := i.snapshot()
	all, factor := i.g.Book.Sample()
	if at := slices.IndexFunc(s.Metrics, func(m stats.Metric) bool { return m.Name == name }); at >= 0 {
		detail.Row = i.metric(&s.Metrics[at], &s, i.sampled())
	} else {
		n := 0
		for _, e := range all {
			if e.Metric == name {
				n++
			}
		}
		if n == 0 {
			return detail, false
		}
		detail.Row = inspect.Row{Name: name, Series: sampled(float64(n)*factor, factor), WorstLabel: i.sampled().worst(name)}
		detail.Limit, detail.Used = i.tightest(name)
	}
	detail.Labels = i.labels(&s, name)
	values := map[string][]string{}
	for _, e := range all {
		if e.Metric != name {
			continue
		}
		labels := labelsOf(e)
		if len(detail.Examples) < maxFullest {
			detail.Examples = append(detail.Examples, labels)
		}
		for _, l := range labels {
			if have := values[l.Name]; len(have) < 5 && !slices.Contains(have, l.Value) {
				values[l.Name] = append(have, l.Value)
			}
		}
	}
	for j := range detail.Labels {
		detail.Labels[j].Examples = values[detail.Labels[j].Name]
	}
	return detail, true
}
