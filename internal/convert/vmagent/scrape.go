// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"errors"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/output"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// extraMetrics is the key for the series of a scrape's limits and page size.
const extraMetrics = "extra_scrape_metrics"

// scrapeFile converts a scrape configuration. Jobs with the same receiver options share a receiver.
func scrapeFile(in *input.Input, out *output.Output, f *flags, text []byte, file string) error {
	root, err := document.Parse(text)
	if err != nil {
		return err
	}
	if document.IsNull(root) {
		return nil
	}
	top := in.Section(file, "", root)
	carry := promconfig.NewCarrier(in, file)
	carry.Templates = true
	carry.Unknown = func(key string) string { return leftOut[key] }
	top.Lose(report.Lost, report.NoRules, "rule_files", "alerting")
	top.Lose(report.Lost, report.NoAnswers, "remote_read", "storage")
	top.Lose(report.Lost, "vmagent's destinations are its flags, and Prometheus' keys for them mean nothing to it", "remote_write")

	globals, first := globalOf(top)
	var receivers []*receiver
	for _, job := range jobsOf(in, top, file) {
		carry.File = job.file
		job.convert(f, globals, first)
		converted := carry.Take(job.node, promconfig.TypeJob, job.path)
		promconfig.NoteLoneBuckets(in, job.file, job.path, converted)
		promconfig.NoteLabels(in, job.file, job.path, converted)
		receivers = put(receivers, job.options, converted)
	}
	carry.File = file
	if globals == nil {
		globals = document.NewTable().Node
	}
	if len(receivers) > 0 && document.Find(globals, extraMetrics) == nil {
		globals.Content = append(globals.Content, document.StringNode(extraMetrics), document.NodeOf(true)) // vmagent always has them
		top.Say(report.Note, nil, "", "vmagent's `scrape_timeout_seconds` is sent by `extra_scrape_metrics`; its `scrape_response_size_bytes` is called `scrape_body_size_bytes`, and its "+
			"`scrape_samples_limit` `scrape_sample_limit`")
	}
	if labels := document.Find(globals, "external_labels"); !document.IsNull(labels) && len(receivers) > 0 {
		top.Say(report.Note, labels, "global.external_labels", "a series that has such a label keeps it; vmagent calls it exported_NAME then")
	}
	limit := f.number("promscrape.maxScrapeSize", 0)
	for _, r := range receivers {
		config := document.NewTable()
		if len(globals.Content) > 0 {
			made := carry.Take(globals, promconfig.TypeGlobal, "global")
			out.External = document.Find(made, "external_labels")
			promconfig.NoteLabels(in, file, "global", made)
			if !f.has(sharedAggregation) && !f.has(ownAggregation) { // rules of aggregation may read them
				made = promconfig.WithoutExternalLabels(made)
			}
			config.Set("global", made)
		}
		settings := document.NewTable().Set("config", config.Set("scrape_configs", r.jobs))
		settings.Set(promconfig.KeepsIdentity, true)
		r.options.set(settings)
		if limit > 0 {
			settings.Set("max_body_size", limit)
		}
		out.Receive(promconfig.Scraper, settings)
	}
	if len(receivers) > 0 {
		top.Say(report.Note, nil, "", promconfig.AsNumbers)
		top.Say(report.Note, nil, "", promconfig.InfoNote)
	}
	out.Discoveries = carry.Found
	return nil
}

// jobsOf returns the jobs of a file and of the files that it names.
func jobsOf(in *input.Input, top *input.Section, file string) (jobs []*job) {
	add := func(node *yaml.Node, file, path string) {
		jobs = append(jobs, &job{in: in, file: file, path: path, node: node, rules: &ruler{in: in, file: file}})
	}
	own := top.Items("scrape_configs")
	promconfig.NoteOwnMetrics(in, file, document.SequenceNode(own...), "8429", "vmagent")
	for i, node := range own {
		add(node, file, "scrape_configs["+strconv.Itoa(i)+"]")
	}
	for _, pattern := range top.Items("scrape_config_files") {
		more, names, err := jobFiles(in, pattern.Value)
		if err != nil {
			top.Say(report.Lost, pattern, "scrape_config_files", "cannot read "+pattern.Value+": "+err.Error())
		}
		for i, node := range more {
			add(node, names[i], "["+strconv.Itoa(i)+"]")
		}
	}
	return jobs
}

// A receiver has jobs with the same receiver options.
type receiver struct {
	options jobOptions
	jobs    *yaml.Node
}

// put adds a job to the receiver with its options, which it makes if there is none.
func put(receivers []*receiver, options jobOptions, job *yaml.Node) []*receiver {
	at := slices.IndexFunc(receivers, func(r *receiver) bool { return r.options == options })
	if at < 0 {
		at, receivers = len(receivers), append(receivers, &receiver{options, document.SequenceNode()})
	}
	receivers[at].jobs.Content = append(receivers[at].jobs.Content, job)
	return receivers
}

// globalOf splits `global` into the keys that Prometheus also has, and the rules that precede those of each job.
func globalOf(top *input.Section) (globals *yaml.Node, first map[string]*yaml.Node) {
	first = map[string]*yaml.Node{}
	global := top.Sub("global")
	if global == nil || global.Node.Kind != yaml.MappingNode {
		return nil, first
	}
	copied := *global.Node
	copied.Content = append([]*yaml.Node{}, global.Node.Content...)
	globals = &copied
	for _, key := range []string{"relabel_configs", "metric_relabel_configs"} {
		global.Get(key)
		first[key] = document.Remove(globals, key)
	}
	for _, key := range []string{"evaluation_interval", "query_log_file", "rule_query_offset"} {
		global.Lose(report.Note, "it is about rules and queries, of which there are none", key)
		document.Remove(globals, key)
	}
	for i := 0; i < len(global.Node.Content); i += 2 { // the carrier reports unknown keys
		global.Claim(global.Node.Content[i].Value)
	}
	return globals, first
}

// jobFiles reads the lists of jobs in vmagent's scrape_config_files, and returns the file of each job.
func jobFiles(in *input.Input, pattern string) (jobs []*yaml.Node, files []string, err error) {
	names := in.Beside(pattern)
	if len(names) == 0 {
		names, err = in.Glob(in.Join(pattern))
	}
	if err == nil && len(names) == 0 {
		err = errors.New("there is no such file; give it beside the others, under any directory")
	}
	for _, name := range names {
		text, err := in.Read(name)
		if err != nil {
			return jobs, files, err
		}
		root, err := document.Parse(text)
		if err != nil {
			return jobs, files, err
		}
		if !document.IsNull(root) && root.Kind != yaml.SequenceNode {
			return jobs, files, errors.New("it must be a list of jobs")
		}
		for _, job := range document.Contents(root) {
			jobs, files = append(jobs, job), append(files, name)
		}
	}
	return jobs, files, err
}
