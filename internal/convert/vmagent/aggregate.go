// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// aggregateOutputs maps vmagent's outputs to the nearest ones of the processor cardinality.
var aggregateOutputs = map[string]string{
	"total": "sum", "total_prometheus": "sum", "sum_samples": "sum", "count_series": "count",
	"min": "min", "max": "max", "avg": "avg", "last": "last",
}

// resourceLabels maps labels of series to the attributes of the resource that they become.
var resourceLabels = map[string]string{"job": "service.name", "instance": "service.instance.id"}

// An aggregation holds the rules of stream aggregation for all series, or for those of one destination.
type aggregation struct {
	in    *input.Input
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

// aggregations converts the files of stream aggregation into rules for everything that is scraped. If destinations
// differ and have pipelines of their own, own has the rules of each, which begin with the shared ones.
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
		return [3]string{path, strconv.FormatBool(f.on("remoteWrite.streamAggr.keepInput", url)), f.of("remoteWrite.streamAggr.dropInputLabels", url)}
	}
	same := !slices.ContainsFunc(urls, func(url int) bool { return said(url) != said(urls[0]) })
	if !same && !apart {
		f.say(report.Lost, ownAggregation, "destinations that series are divided among have one aggregation in common: that of the first")
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
	f.say(report.Changed, ownAggregation, "each destination with an aggregation of its own has a pipeline of its own, which what is scraped is copied for")
	return shared, own
}

// load adds the rules of the file that a flag names for a destination.
func (a *aggregation) load(f *flags, name string, url int) {
	prefix := strings.TrimSuffix(name, "config")
	a.keep = f.on(prefix+"keepInput", url)
	labels := []string{f.of(prefix+"dropInputLabels", url)}
	if name == sharedAggregation {
		labels = f.list(prefix + "dropInputLabels")
	}
	drop := f.on(prefix+"dropInput", url)
	path := f.of(name, url)
	if path == "" {
		return
	}
	if drop {
		f.say(report.Lost, prefix+"dropInput", "what no rule matches passes: `write_relabel_configs` of the exporter can drop it")
	}
	text, at, err := f.in.Open(path)
	if err != nil {
		f.say(report.Lost, name, "cannot read it: "+err.Error()+"; give it beside the flags, under any directory")
		return
	}
	root, err := document.Parse(text)
	if err != nil {
		f.say(report.Lost, name, err.Error())
		return
	}
	if f.has("remoteWrite.relabelConfig") || name == ownAggregation && f.of("remoteWrite.urlRelabelConfig", url) != "" {
		f.say(report.Changed, name, "series are added up before the rules of `write_relabel_configs`, and after them in vmagent: "+
			"rules that an aggregation needs belong under `metric_relabel_configs` of the jobs")
	}
	a.dropped = nil
	for _, value := range labels {
		if f.isElsewhere(prefix+"dropInputLabels", value) {
			continue
		}
		a.dropped = append(a.dropped, strings.FieldsFunc(value, func(r rune) bool { return r == '^' })...)
	}
	if !document.IsNull(root) && root.Kind != yaml.SequenceNode {
		f.say(report.Lost, name, "it must be a list of rules: "+at)
	}
	a.file = at
	for i, item := range document.Contents(root) {
		a.rule(a.in.Section(at, "["+strconv.Itoa(i)+"]", item))
	}
}

// thinned reports what is lost if a flag only thins out a destination's samples. With aggregation rules, vmagent
// deduplicates their input instead; the processor takes the last value then.
func thinned(f *flags, name string, url int) {
	if f.of(name, url) != "" {
		return
	}
	prefix := strings.TrimSuffix(name, "config")
	interval := f.of(prefix+"dedupInterval", url)
	if d, err := promconfig.Duration(interval); f.isElsewhere(prefix+"dedupInterval", interval) || err != nil || d <= 0 {
		return
	}
	f.say(report.Lost, prefix+"dedupInterval", "every sample is sent: a longer `scrape_interval` makes fewer, and what replicas send twice is for the store to remove, "+
		"as VictoriaMetrics does with `-dedup.minScrapeInterval`")
	if f.has(prefix + "dropInputLabels") {
		f.say(report.Lost, prefix+"dropInputLabels", "there is no stream aggregation: `action: labeldrop` under `write_relabel_configs` leaves labels out")
	}
}

// rule converts a rule of vmagent's to one rule for each of its selectors. A rule that is left out is reported once,
// not once for each of its keys.
func (a *aggregation) rule(s *input.Section) {
	matches, list := s.Get("match"), s.Get("outputs")
	for _, key := range []string{"name", "by", "without", "drop_input_labels", "keep_metric_names", "interval"} {
		s.Get(key)
	}
	for _, key := range slices.Concat(ownLabels, builtIn) {
		s.Get(key)
	}
	dropped := slices.Clone(a.dropped)
	if own := s.Get("drop_input_labels"); own != nil {
		dropped = document.Texts(own)
	}
	aggregate := document.NewTable()
	without := s.Items("without")
	if by := document.ValuesOf(s.Items("by")); len(by) > 0 { // an empty list is the same as no list
		aggregate.Set("by", attributesOf(slices.DeleteFunc(by, func(label string) bool { return slices.Contains(dropped, label) })))
	} else if labels := attributesOf(append(document.ValuesOf(without), dropped...)); len(labels) > 0 {
		aggregate.Set("without", labels)
	}
	if aggregate.Empty() {
		s.Say(report.Lost, nil, "", "the rule is left out, and what it matches is sent as it is: without `by` and `without` it makes as many series as it gets")
		return
	}
	if !slices.ContainsFunc(document.Texts(list), func(output string) bool { return aggregateOutputs[output] != "" }) {
		s.Say(report.Lost, list, "outputs", strings.TrimSuffix("the rule is left out, and what it matches is sent as it is: it has no output that there is here, but "+strings.Join(document.Texts(list), ", "), ", but "))
		return
	}
	var all []document.Table
	for _, selector := range selectorsOf(matches) {
		made, ok := a.matches(selector)
		if !ok {
			s.Say(report.Lost, matches, "match", strconv.Quote(selector)+" is left out, and what it matches is sent as it is: "+
				"the processor has one pattern for a label, which cannot say this")
			continue
		}
		all = append(all, made...)
	}
	if len(all) == 0 {
		return
	}
	if all = oneOfNames(all); len(all) > 1 {
		s.Say(report.Changed, matches, "match", "each of its selectors has a rule: what several of them match, each adds up")
	}
	if d, err := promconfig.Duration(s.Text("interval")); err == nil && d > 0 {
		aggregate.Set("interval", promconfig.GoDuration(d))
		a.longest = max(a.longest, d)
	} else {
		s.Say(report.Lost, document.Find(s.Node, "interval"), "interval", "it is no duration: the default of 1m holds")
	}
	s.Lose(report.Lost, "only the processor's own attributes go and stay: put such rules under `metric_relabel_configs`", ownLabels...)
	s.Lose(report.Note, "the processor has this built in, or needs none of it", builtIn...)
	outputs := a.outputs(s, list)
	aggregate.Set("outputs", outputs)
	if a.keep {
		aggregate.Set("keep_input", true)
	}
	name := s.Text("name")
	if name == "" {
		name = "aggregation " + strings.Trim(s.Path, "[]")
	}
	for _, match := range all {
		rule := document.NewTable().Set("name", a.unique(name))
		if !match.Empty() {
			rule.Set("match", match)
		}
		a.rules = append(a.rules, rule.Set("aggregate", aggregate).Node)
	}
	text := "series that are made have the name of the metric, and `.count`, `.max` and so on where there are several outputs; vmagent's are called name:interval_by_labels_output. "
	if document.Truth(s.Text("keep_metric_names")) && len(outputs) == 1 {
		text = ""
	}
	s.Say(report.Changed, nil, "", text+"Histograms and counters are added up as a whole")
}

var (
	// ownLabels are keys of a rule that contain rules for labels. builtIn are keys that need no counterpart in the
	// processor.
	ownLabels = []string{"input_relabel_configs", "output_relabel_configs"}
	builtIn   = []string{
		"dedup_interval", "enable_windows", "staleness_interval", "ignore_first_sample_interval", "ignore_first_intervals",
		"no_align_flush_to_interval", "flush_on_shutdown", "ignore_old_samples",
	}
)

// selectorsOf returns the selectors of a rule. A rule without any has an empty one, which matches all series.
func selectorsOf(matches *yaml.Node) []string {
	switch {
	case matches == nil, matches.Kind == yaml.SequenceNode && len(matches.Content) == 0:
		return []string{""}
	case matches.Kind == yaml.SequenceNode:
		return document.Texts(matches)
	}
	return []string{matches.Value}
}

// matches converts a selector to the processor's matches, one for each side of its `or`.
func (a *aggregation) matches(selector string) (made []document.Table, ok bool) {
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

// attributesOf returns the attributes that labels come from, without duplicates and without the metric's name.
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

// unique returns a name that no earlier rule has, whichever file that rule is from.
func (a *aggregation) unique(name string) string {
	made := promconfig.NewCarrier(a.in, a.file).Text(name)
	for n := 2; slices.ContainsFunc(a.rules, func(rule *yaml.Node) bool { return document.Find(rule, "name").Value == made }); n++ {
		made = promconfig.NewCarrier(a.in, a.file).Text(name + " " + strconv.Itoa(n))
	}
	return made
}

func (a *aggregation) outputs(s *input.Section, list *yaml.Node) []string {
	var outputs []string
	for _, output := range document.Contents(list) {
		to := aggregateOutputs[output.Value]
		switch {
		case to == "":
			s.Say(report.Lost, output, "outputs", output.Value+" is not made here: a query over what is sent makes it")
		case !slices.Contains(outputs, to):
			outputs = append(outputs, to)
		}
		if output.Value == "sum_samples" || output.Value == "avg" {
			s.Say(report.Changed, output, "outputs", output.Value+" is of the last value of each series, not of all within the interval")
		}
	}
	return outputs
}

// match converts the matchers of a selector to a match of the processor.
func (a *aggregation) match(matchers []matcher) (document.Table, bool) {
	made, resource, attributes := document.NewTable(), document.NewTable(), document.NewTable()
	carry := promconfig.NewCarrier(a.in, a.file)
	carry.Templates = true
	for _, m := range matchers {
		in, key, patternOf := attributes, m.label, patternOf
		if m.label == "__name__" {
			in, key, patternOf = made, "metric", namePatternOf
		} else if of := resourceLabels[m.label]; of != "" {
			in, key = resource, of
		}
		pattern, ok := patternOf(m)
		if !ok || in.Has(key) { // the processor has one pattern for each attribute
			return made, false
		}
		if pattern != "" {
			in.Set(key, carry.Text(pattern))
		}
	}
	if !resource.Empty() {
		made.Set("resource", resource)
	}
	if !attributes.Empty() {
		made.Set("attributes", attributes)
	}
	return made, true
}
