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

// An aggregation is what files of stream aggregation say of all series, or of those for one destination.
type aggregation struct {
	in    *input
	file  string
	keep  bool
	rules []*yaml.Node
	// dropped are labels that all rules ignore.
	dropped []string
	// longest is the longest interval of a rule.
	longest time.Duration
}

const (
	sharedAggregation = "streamAggr.config"
	ownAggregation    = "remoteWrite.streamAggr.config"
)

// aggregations converts the files of stream aggregation: into rules for all that is scraped, and where destinations differ, and are apart, also into
// those for each of them, which begin with the former.
func aggregations(f *flags, urls []int, apart bool) (shared *aggregation, own []*aggregation) {
	shared = &aggregation{in: f.in}
	shared.load(f, sharedAggregation, 0)
	thinned(f, sharedAggregation, 0)
	for _, url := range urls {
		thinned(f, ownAggregation, url)
	}
	said := func(url int) [3]string {
		path := f.of(ownAggregation, url)
		if path == "" {
			return [3]string{}
		}
		return [3]string{path, strconv.FormatBool(truth(f.of("remoteWrite.streamAggr.keepInput", url))), f.of("remoteWrite.streamAggr.dropInputLabels", url)}
	}
	same := !slices.ContainsFunc(urls, func(url int) bool { return said(url) != said(urls[0]) })
	if !same && !apart {
		f.say(Lost, ownAggregation, "destinations that series are divided among have one aggregation in common: that of the first")
	}
	if same || !apart {
		shared.load(f, ownAggregation, urls[0])
		return shared, nil
	}
	for _, url := range urls {
		a := &aggregation{in: f.in, rules: slices.Clone(shared.rules), longest: shared.longest}
		a.load(f, ownAggregation, url)
		own = append(own, a)
	}
	f.say(Changed, ownAggregation, "each destination with an aggregation of its own has a pipeline of its own, which what is scraped is copied for")
	return shared, own
}

// load converts the file that a flag names for a destination.
func (a *aggregation) load(f *flags, name string, url int) {
	prefix := strings.TrimSuffix(name, "config")
	a.keep = truth(f.of(prefix+"keepInput", url))
	labels := []string{f.of(prefix+"dropInputLabels", url)}
	if name == sharedAggregation {
		labels = f.list(prefix + "dropInputLabels")
	}
	drop := truth(f.of(prefix+"dropInput", url))
	path := f.of(name, url)
	if path == "" {
		return
	}
	if drop {
		f.say(Lost, prefix+"dropInput", "what no rule matches passes: `write_relabel_configs` of the exporter can drop it")
	}
	text, at, err := f.in.open(path)
	if err != nil {
		f.say(Lost, name, "cannot read it: "+err.Error()+"; give it beside the flags, under any directory")
		return
	}
	root, err := parse(text)
	if err != nil {
		f.say(Lost, name, err.Error())
		return
	}
	if f.has("remoteWrite.relabelConfig") || name == ownAggregation && f.of("remoteWrite.urlRelabelConfig", url) != "" {
		f.say(Changed, name, "series are added up before the rules of `write_relabel_configs`, and after them in vmagent: "+
			"rules that an aggregation needs belong under `metric_relabel_configs` of the jobs")
	}
	a.dropped = nil
	for _, value := range labels {
		a.dropped = append(a.dropped, strings.FieldsFunc(value, func(r rune) bool { return r == '^' })...)
	}
	if !isNull(root) && root.Kind != yaml.SequenceNode {
		f.say(Lost, name, "it must be a list of rules: "+at)
	}
	a.file = at
	for i, item := range contents(root) {
		a.rule(a.in.section(at, "["+strconv.Itoa(i)+"]", item))
	}
}

// thinned says what is lost where a destination's samples are only thinned out: with rules, vmagent does so to what these add up, of which the last
// value is taken here.
func thinned(f *flags, name string, url int) {
	if f.of(name, url) != "" {
		return
	}
	prefix := strings.TrimSuffix(name, "config")
	if d, err := duration(f.of(prefix+"dedupInterval", url)); err != nil || d <= 0 {
		return
	}
	f.say(Lost, prefix+"dedupInterval", "every sample is sent: a longer `scrape_interval` makes fewer, and what replicas send twice is for the store to remove, "+
		"as VictoriaMetrics does with `-dedup.minScrapeInterval`")
	if f.has(prefix + "dropInputLabels") {
		f.say(Lost, prefix+"dropInputLabels", "there is no stream aggregation: `action: labeldrop` under `write_relabel_configs` leaves labels out")
	}
}

// rule makes rules of one of vmagent's, one for each of its selectors. One that is left out is one line of the report, not one for each of its keys.
func (a *aggregation) rule(s *section) {
	matches, list := s.get("match"), s.get("outputs")
	for _, key := range []string{"name", "by", "without", "drop_input_labels", "keep_metric_names", "interval"} {
		s.get(key)
	}
	for _, key := range slices.Concat(ownLabels, builtIn) {
		s.get(key)
	}
	dropped := slices.Clone(a.dropped)
	if own := s.get("drop_input_labels"); own != nil {
		dropped = texts(own)
	}
	aggregate := newTable()
	without := s.items("without")
	if by := valuesOf(s.items("by")); len(by) > 0 { // an empty list is as none
		aggregate.set("by", attributesOf(slices.DeleteFunc(by, func(label string) bool { return slices.Contains(dropped, label) })))
	} else if labels := attributesOf(append(valuesOf(without), dropped...)); len(labels) > 0 {
		aggregate.set("without", labels)
	}
	if aggregate.empty() {
		s.say(Lost, nil, "", "the rule is left out, and what it matches is sent as it is: without `by` and `without` it makes as many series as it gets")
		return
	}
	if !slices.ContainsFunc(texts(list), func(output string) bool { return aggregateOutputs[output] != "" }) {
		s.say(Lost, list, "outputs", strings.TrimSuffix("the rule is left out, and what it matches is sent as it is: it has no output that there is here, but "+strings.Join(texts(list), ", "), ", but "))
		return
	}
	var all []table
	for _, selector := range selectorsOf(matches) {
		made, ok := a.matches(selector)
		if !ok {
			s.say(Lost, matches, "match", strconv.Quote(selector)+" is left out, and what it matches is sent as it is: "+
				"the processor has one pattern for a label, which cannot say this")
			continue
		}
		all = append(all, made...)
	}
	if len(all) == 0 {
		return
	}
	if all = oneOfNames(all); len(all) > 1 {
		s.say(Changed, matches, "match", "each of its selectors has a rule: what several of them match, each adds up")
	}
	if d, err := duration(s.text("interval")); err == nil && d > 0 {
		aggregate.set("interval", goDuration(d))
		a.longest = max(a.longest, d)
	} else {
		s.say(Lost, find(s.node, "interval"), "interval", "it is no duration: the default of 1m holds")
	}
	s.lose(Lost, "only the processor's own attributes go and stay: put such rules under `metric_relabel_configs`", ownLabels...)
	s.lose(Note, "the processor has this built in, or needs none of it", builtIn...)
	outputs := a.outputs(s, list)
	aggregate.set("outputs", outputs)
	if a.keep {
		aggregate.set("keep_input", true)
	}
	name := s.text("name")
	if name == "" {
		name = "aggregation " + strings.Trim(s.path, "[]")
	}
	for _, match := range all {
		rule := newTable().set("name", a.unique(name))
		if !match.empty() {
			rule.set("match", match)
		}
		a.rules = append(a.rules, rule.set("aggregate", aggregate).node)
	}
	text := "series that are made have the name of the metric, and `.count`, `.max` and so on where there are several outputs; vmagent's are called name:interval_by_labels_output. "
	if truth(s.text("keep_metric_names")) && len(outputs) == 1 {
		text = ""
	}
	s.say(Changed, nil, "", text+"Histograms and counters are added up as a whole")
}

var (
	// ownLabels are keys of a rule with rules for labels, builtIn those that the processor needs no word about.
	ownLabels = []string{"input_relabel_configs", "output_relabel_configs"}
	builtIn   = []string{
		"dedup_interval", "enable_windows", "staleness_interval", "ignore_first_sample_interval", "ignore_first_intervals",
		"no_align_flush_to_interval", "flush_on_shutdown", "ignore_old_samples",
	}
)

// selectorsOf are what a rule matches: one, several, or with none all series.
func selectorsOf(matches *yaml.Node) []string {
	switch {
	case matches == nil, matches.Kind == yaml.SequenceNode && len(matches.Content) == 0:
		return []string{""}
	case matches.Kind == yaml.SequenceNode:
		return texts(matches)
	}
	return []string{matches.Value}
}

// matches makes what the processor matches of a selector, one for each side of its `or`.
func (a *aggregation) matches(selector string) (made []table, ok bool) {
	sides := [][]matcher{nil}
	if selector != "" {
		if sides, ok = parseSelector(selector); !ok {
			return nil, false
		}
	}
	for _, matchers := range sides {
		match, ok := a.match(matchers)
		if !ok {
			return nil, false
		}
		made = append(made, match)
	}
	return made, true
}

// attributesOf are what labels are before they are sent, each once. The name is none.
func attributesOf(labels []string) []string {
	made := []string{}
	for _, label := range labels {
		if to := resourceLabels[label]; to != "" {
			label = to
		}
		if label != "__name__" && !slices.Contains(made, label) {
			made = append(made, label)
		}
	}
	return made
}

func texts(list *yaml.Node) []string { return valuesOf(contents(list)) }

func valuesOf(items []*yaml.Node) []string {
	var values []string
	for _, item := range items {
		values = append(values, item.Value)
	}
	return values
}

// unique is a name that no rule has, of this file or of another.
func (a *aggregation) unique(name string) string {
	made := a.in.carrier(a.file).text(name)
	for n := 2; slices.ContainsFunc(a.rules, func(rule *yaml.Node) bool { return find(rule, "name").Value == made }); n++ {
		made = a.in.carrier(a.file).text(name + " " + strconv.Itoa(n))
	}
	return made
}

func (a *aggregation) outputs(s *section, list *yaml.Node) []string {
	var outputs []string
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
func (a *aggregation) match(matchers []matcher) (table, bool) {
	made, resource, attributes := newTable(), newTable(), newTable()
	carry := a.in.carrier(a.file)
	carry.templates = true
	for _, m := range matchers {
		in, key, patternOf := attributes, m.label, patternOf
		if m.label == "__name__" {
			in, key, patternOf = made, "metric", namePatternOf
		} else if of := resourceLabels[m.label]; of != "" {
			in, key = resource, of
		}
		pattern, ok := patternOf(m)
		if !ok || in.has(key) { // the processor asks one thing of each
			return made, false
		}
		if pattern != "" {
			in.set(key, carry.text(pattern))
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
