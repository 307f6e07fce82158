// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// aggregateOutputs are vmagent's outputs, and those of the processor cardinality that come nearest.
var aggregateOutputs = map[string]string{
	"total": "sum", "total_prometheus": "sum", "sum_samples": "sum", "count_series": "count",
	"min": "min", "max": "max", "avg": "avg", "last": "last",
}

// resourceLabels are labels of series that are attributes of the resource before they are sent.
var resourceLabels = map[string]string{"job": "service.name", "instance": "service.instance.id"}

// An aggregation is a file of stream aggregation that is being converted.
type aggregation struct {
	in    *input
	file  string
	keep  bool
	rules []*yaml.Node
	// longest is the longest interval of a rule.
	longest time.Duration
}

// aggregations converts the files of stream aggregation into rules for all that is scraped.
func aggregations(f *flags) *aggregation {
	a := &aggregation{in: f.in}
	names := []string{"streamAggr.config"}
	own := f.list("remoteWrite.streamAggr.config")
	switch urls := len(f.list("remoteWrite.url")); {
	case len(own) == 0:
	case len(own) == 1 || !slices.ContainsFunc(own, func(path string) bool { return path != own[0] }) && len(own) >= urls:
		names = append(names, "remoteWrite.streamAggr.config")
	default:
		f.say(Lost, "remoteWrite.streamAggr.config", "destinations have one aggregation in common: give each a pipeline with a processor `cardinality` of its own")
	}
	for _, name := range names {
		path := f.of(name, 0)
		if path == "" {
			continue
		}
		prefix := strings.TrimSuffix(name, "config")
		a.keep = truth(f.of(prefix+"keepInput", 0))
		if truth(f.of(prefix+"dropInput", 0)) {
			f.say(Lost, prefix+"dropInput", "what no rule matches passes: `write_relabel_configs` of the exporter can drop it")
		}
		text, at, err := f.in.open(path)
		if err != nil {
			f.say(Lost, name, "cannot read it: "+err.Error()+"; give it beside the flags, under any directory")
			continue
		}
		root, err := parse(text)
		if err != nil {
			f.say(Lost, name, err.Error())
			continue
		}
		a.file = at
		for i, item := range contents(root) {
			a.rule(a.in.section(at, "["+strconv.Itoa(i)+"]", item))
		}
	}
	return a
}

// rule makes rules of one of vmagent's, one for each of its selectors.
func (a *aggregation) rule(s *section) {
	name := s.text("name")
	if name == "" {
		name = "aggregation " + strings.Trim(s.path, "[]")
	}
	aggregate := newTable()
	for _, key := range []string{"by", "without"} {
		list := s.get(key)
		if list == nil {
			continue
		}
		var labels []string
		for _, label := range contents(list) {
			if to := resourceLabels[label.Value]; to != "" {
				labels = append(labels, to)
			} else if label.Value != "__name__" {
				labels = append(labels, label.Value)
			}
		}
		if labels != nil || key == "by" {
			aggregate.set(key, append([]string{}, labels...))
		}
	}
	matches := s.get("match")
	outputs := a.outputs(s)
	if d, err := duration(s.text("interval")); err == nil && d > 0 {
		aggregate.set("interval", goDuration(d))
		a.longest = max(a.longest, d)
	} else {
		s.say(Lost, find(s.node, "interval"), "interval", "it is no duration: the default of 1m holds")
	}
	s.lose(Lost, "only the processor's own attributes go and stay: put such rules under `metric_relabel_configs`", "input_relabel_configs", "output_relabel_configs", "drop_input_labels")
	s.lose(Note, "the processor has this built in, or needs none of it", "dedup_interval", "enable_windows", "staleness_interval", "ignore_first_sample_interval",
		"ignore_first_intervals", "no_align_flush_to_interval", "flush_on_shutdown", "ignore_old_samples", "keep_metric_names")
	if !aggregate.has("by") && !aggregate.has("without") {
		s.say(Lost, nil, "", "the rule is left out: without `by` and `without` it makes as many series as it gets")
		return
	}
	if len(outputs) == 0 {
		s.say(Lost, nil, "outputs", "the rule is left out: it has no output that there is here")
		return
	}
	aggregate.set("outputs", outputs)
	if a.keep {
		aggregate.set("keep_input", true)
	}
	var selectors []string
	switch {
	case matches == nil:
		selectors = []string{""}
	case matches.Kind == yaml.SequenceNode:
		for _, m := range matches.Content {
			selectors = append(selectors, m.Value)
		}
	default:
		selectors = []string{matches.Value}
	}
	for i, selector := range selectors {
		match, ok := a.match(s, selector)
		if !ok {
			s.say(Lost, matches, "match", strconv.Quote(selector)+" is left out: the processor matches names and attributes with `*`, and nothing but what is there")
			continue
		}
		made := newTable().set("name", a.name(name, i))
		if !match.empty() {
			made.set("match", match)
		}
		a.rules = append(a.rules, made.set("aggregate", aggregate).node)
	}
	s.say(Changed, nil, "", "series that are made have the name of the metric, and `.count`, `.max` and so on where there are several outputs; vmagent's are called name:interval_by_labels_output. "+
		"Histograms and counters are added up as a whole")
}

func (a *aggregation) name(name string, i int) string {
	if i > 0 {
		name += " " + strconv.Itoa(i+1)
	}
	return a.in.carrier(a.file).text(name)
}

func (a *aggregation) outputs(s *section) []string {
	var outputs []string
	list := s.get("outputs")
	for _, output := range contents(list) {
		to := aggregateOutputs[output.Value]
		switch {
		case to == "":
			s.say(Lost, output, "outputs", output.Value+" is not made here: a query over what is sent makes it")
		case !slices.Contains(outputs, to):
			outputs = append(outputs, to)
		}
		if output.Value == "sum_samples" || output.Value == "avg" {
			s.say(Changed, output, "outputs", output.Value+" is of the last value of each series, not of all within the interval")
		}
	}
	return outputs
}

// match makes what the processor matches of a selector.
func (a *aggregation) match(_ *section, selector string) (table, bool) {
	made := newTable()
	if selector == "" {
		return made, true
	}
	matchers, ok := parseSelector(selector)
	if !ok {
		return made, false
	}
	carry := a.in.carrier(a.file)
	carry.templates = true
	resource, attributes := newTable(), newTable()
	for _, m := range matchers {
		glob, ok := globOf(m)
		if !ok {
			return made, false
		}
		glob = carry.text(glob)
		switch {
		case m.label == "__name__":
			for _, part := range []string{"_bucket", "_sum", "_count"} { // of a histogram, which is one metric
				glob = strings.TrimSuffix(glob, part)
			}
			made.set("metric", glob)
		case resourceLabels[m.label] != "":
			resource.set(resourceLabels[m.label], glob)
		default:
			attributes.set(m.label, glob)
		}
	}
	if !resource.empty() {
		made.set("resource", resource)
	}
	if !attributes.empty() {
		made.set("attributes", attributes)
	}
	return made, true
}

// globOf makes a pattern with * of a matcher, if it can be said so.
func globOf(m matcher) (string, bool) {
	if m.not || m.regex == "" {
		return "", false
	}
	var glob strings.Builder
	for rest := m.regex; rest != ""; {
		switch {
		case strings.HasPrefix(rest, ".*"), strings.HasPrefix(rest, ".+"):
			glob.WriteByte('*')
			rest = rest[2:]
		case rest[0] == '\\' && len(rest) > 1 && rest[1] != '*' && strings.ContainsRune(`.+()|[]{}^$?\`, rune(rest[1])):
			glob.WriteByte(rest[1])
			rest = rest[2:]
		case strings.ContainsRune(`.*+?()|[]{}^$\`, rune(rest[0])):
			return "", false
		default:
			glob.WriteByte(rest[0])
			rest = rest[1:]
		}
	}
	return glob.String(), true
}
