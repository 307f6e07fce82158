// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// oracle implements the same rules in the most obvious way: with maps of identities in full, and by counting all series
// each time. It shares no code with the real limiter except the configuration.
type oracle struct {
	cfg        *Config
	epoch      int
	generation int
	since      map[string]int // the generation that a limit was added in, by its definition
	series     map[string]*oracleSeries
	values     map[string]int // the epoch in which a label value was last seen
	left       map[string]*oracleLeft
}

// oracleLeft is a series that lost its place.
type oracleLeft struct{ seen, said int }

type oracleSeries struct {
	seen       int
	generation int
	groups     []string
}

func newOracle(cfg *Config) *oracle {
	o := &oracle{
		since: map[string]int{}, series: map[string]*oracleSeries{}, values: map[string]int{}, left: map[string]*oracleLeft{},
	}
	o.reload(cfg)
	return o
}

// reload changes the rules. Limits with an unchanged definition keep their counts.
func (o *oracle) reload(cfg *Config) {
	o.cfg = cfg
	o.generation++
	since := map[string]int{}
	for _, r := range o.rules() {
		for _, def := range append([]string{define(r)}, labelDefinitions(r)...) {
			since[def] = o.generation
			if before, ok := o.since[def]; ok {
				since[def] = before
			}
		}
	}
	o.since = since
}

// restart forgets when series were last seen, and under which rules, except that they are older than the current ones.
// Limits that were not completely counted before count as new.
func (o *oracle) restart() {
	oldest := o.generation
	for _, s := range o.series {
		oldest = min(oldest, s.generation)
	}
	o.generation++
	for def, since := range o.since {
		if since > oldest {
			o.since[def] = o.generation
		} else {
			o.since[def] = 0
		}
	}
	for _, s := range o.series {
		s.seen, s.generation = o.epoch, 0
	}
	for v := range o.values {
		o.values[v] = o.epoch
	}
	for _, l := range o.left {
		l.seen = o.epoch
	}
}

func (o *oracle) rules() []RuleConfig {
	rules := slices.Clone(o.cfg.Rules)
	if n := o.cfg.Defaults.MaxSeriesPerMetric; n > 0 {
		rules = append(rules, RuleConfig{Name: "defaults", GroupBy: []string{"metric"}, MaxSeries: n})
	}
	return append(rules, RuleConfig{Name: "total", MaxSeries: o.cfg.Memory.MaxSeries})
}

func define(r RuleConfig) string {
	return fmt.Sprint(r.Name, "|", r.Match.Metric, "|", r.Match.Scope, "|", spellStrings(r.Match.Resource), "|", spellStrings(r.Match.Attributes), "|", r.GroupBy)
}

func labelDefinitions(r RuleConfig) []string {
	var out []string
	for _, label := range slices.Sorted(maps.Keys(r.LabelLimits)) {
		out = append(out, define(r)+"|label "+label)
	}
	return out
}

func spellStrings(m map[string]string) string {
	var out []string
	for k, v := range m {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return strings.Join(out, ",")
}

// tick ends an epoch.
func (o *oracle) tick() {
	maps.DeleteFunc(o.left, func(_ string, l *oracleLeft) bool { return o.epoch-l.seen > series.KeptEpochs })
	maps.DeleteFunc(o.series, func(id string, s *oracleSeries) bool {
		idle := o.epoch-s.seen > series.KeptEpochs
		if idle {
			o.left[id] = &oracleLeft{seen: o.epoch}
		}
		return idle
	})
	maps.DeleteFunc(o.values, func(_ string, seen int) bool { return o.epoch-seen > series.KeptValueEpochs })
	o.epoch++
}

// admit reports whether a point's series has a place, and otherwise whether the series ends, with its value or without.
func (o *oracle) admit(p point) (admitted, value, mark bool) {
	for _, e := range o.cfg.Exempt {
		if fits(e, p) {
			return true, false, false
		}
	}
	var groups, values []string
	refused := false
	id := p.identity()
	known := o.series[id]
	for _, r := range o.rules() {
		if !fits(r.Match, p) {
			continue
		}
		group := groupOf(r, p)
		key := define(r) + "||" + group
		groups = append(groups, key)
		if r.MaxSeries > 0 && o.count(key)+o.pending(define(r)) >= r.MaxSeries {
			refused = true
		}
		for label, limit := range r.LabelLimits {
			def := define(r) + "|label " + label
			prefix := def + "||" + group + "||"
			distinct := map[string]bool{}
			for other := range o.values {
				if strings.HasPrefix(other, prefix) {
					distinct[other] = true
				}
			}
			for _, v := range valuesUnder(label, p) {
				value := prefix + fmt.Sprintf("%T:%v", v, v)
				values = append(values, value)
				if !distinct[value] && len(distinct)+o.pending(def) >= limit {
					refused = true
				}
				distinct[value] = true
			}
		}
	}
	if known == nil && refused {
		value, mark = o.lastPoint(p, id)
		return false, value, mark
	}
	delete(o.left, id)
	if known == nil {
		known = &oracleSeries{}
		o.series[id] = known
	}
	known.seen, known.generation, known.groups = o.epoch, o.generation, groups
	for _, v := range values {
		o.values[v] = o.epoch
	}
	return true, false, false
}

// lastPoint: a counter sends its value, and then its end; a gauge only its end; a delta nothing.
func (o *oracle) lastPoint(p point, id string) (value, mark bool) {
	left := o.left[id]
	if left == nil {
		return false, false
	}
	left.seen = o.epoch
	switch p.kind {
	case cumulative, histogram, summary:
		left.said++
		return left.said == 1, left.said == 2
	case gauge, upDown:
		delete(o.left, id)
		return false, true
	default:
		delete(o.left, id)
		return false, false
	}
}

func (o *oracle) count(group string) int {
	n := 0
	for _, s := range o.series {
		if slices.Contains(s.groups, group) {
			n++
		}
	}
	return n
}

// pending returns how many series may belong to a limit without having been counted there.
func (o *oracle) pending(definition string) int {
	n := 0
	for _, s := range o.series {
		if s.generation < o.since[definition] {
			n++
		}
	}
	return n
}

func fits(m MatchConfig, p point) bool {
	if m.Metric != "" && !like(m.Metric, p.name, true) || m.Scope != "" && !like(m.Scope, p.scope, true) {
		return false
	}
	for k, v := range m.Resource {
		if got, ok := p.resource[k]; !like(v, fmt.Sprint(got), ok) {
			return false
		}
	}
	for k, v := range m.Attributes {
		got, ok := p.attrs[k]
		if !ok {
			got, ok = p.resource[k]
		}
		if !like(v, fmt.Sprint(got), ok) {
			return false
		}
	}
	return true
}

// like reports whether a value, or a missing one, matches a pattern.
func like(pattern, s string, there bool) bool {
	if of, ok := strings.CutPrefix(pattern, "not:"); ok {
		return !like(of, s, there)
	}
	if of, ok := strings.CutPrefix(pattern, "regex:"); ok {
		return there && slices.Contains(regexp.MustCompile(`(?s)`+of).FindAllString(s, -1), s)
	}
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok { // the schedules use no other wildcards
		return there && strings.HasPrefix(s, prefix)
	}
	return there && pattern == s
}

// valuesUnder returns the values that a limit of a label applies to, those of the point first.
func valuesUnder(label string, p point) (values []any) {
	key, ofResource := strings.CutPrefix(label, "resource:")
	key, ofPoint := strings.CutPrefix(key, "attribute:")
	if v, ok := p.attrs[key]; ok && !ofResource {
		values = append(values, v)
	}
	if v, ok := p.resource[key]; ok && !ofPoint {
		values = append(values, v)
	}
	return values
}

func groupOf(r RuleConfig, p point) string {
	var out []string
	for _, by := range r.GroupBy {
		v, ok := any(p.name), true
		if key, cut := strings.CutPrefix(by, "resource:"); cut {
			v, ok = p.resource[key]
		} else if key, cut := strings.CutPrefix(by, "attribute:"); cut {
			v, ok = p.attrs[key]
		} else if by != "metric" {
			if v, ok = p.resource[by]; !ok {
				v, ok = p.attrs[by]
			}
		}
		out = append(out, fmt.Sprintf("%v:%T:%v", ok, v, v))
	}
	return strings.Join(out, ",")
}
