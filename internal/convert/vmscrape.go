// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// extraMetrics is the key of what a scrape says of its limits and of its page.
const extraMetrics = "extra_scrape_metrics"

// scrapeFile converts a scrape configuration, into a receiver for all jobs that agree in what a receiver sets.
func scrapeFile(in *input, out *output, f *flags, text []byte, file string) error {
	root, err := parse(text)
	if err != nil {
		return err
	}
	if isNull(root) {
		return nil
	}
	top := in.section(file, "", root)
	carry := in.carrier(file)
	carry.templates = true
	carry.unknown = func(key string) string { return vmagentKeys[key] }
	top.lose(Lost, noRules, "rule_files", "alerting")
	top.lose(Lost, noAnswers, "remote_read", "storage")
	top.lose(Lost, "vmagent's destinations are its flags, and Prometheus' keys for them mean nothing to it", "remote_write")

	globals, first := vmagentGlobal(top)
	jobs := append([]*yaml.Node{}, top.items("scrape_configs")...)
	noteOwnMetrics(in, file, sequence(jobs...), "8429", "vmagent")
	var paths, files []string
	for i := range jobs {
		paths, files = append(paths, "scrape_configs["+strconv.Itoa(i)+"]"), append(files, file)
	}
	for _, pattern := range top.items("scrape_config_files") {
		more, names, err := jobFiles(in, pattern.Value)
		if err != nil {
			top.say(Lost, pattern, "scrape_config_files", "cannot read "+pattern.Value+": "+err.Error())
		}
		for i := range more {
			paths = append(paths, "["+strconv.Itoa(i)+"]")
		}
		jobs, files = append(jobs, more...), append(files, names...)
	}
	type group struct {
		options jobOptions
		jobs    *yaml.Node
	}
	var groups []*group
	for i, node := range jobs {
		carry.file = files[i]
		job := &vmJob{in: in, file: files[i], path: paths[i], node: node, rules: &ruler{in: in, file: files[i]}}
		job.convert(f, globals, first)
		converted := carry.take(job.node, typeJob, job.path)
		noteLoneBuckets(in, files[i], paths[i], converted)
		var at *group
		for _, g := range groups {
			if g.options == job.options {
				at = g
			}
		}
		if at == nil {
			at = &group{job.options, sequence()}
			groups = append(groups, at)
		}
		at.jobs.Content = append(at.jobs.Content, converted)
	}
	carry.file = file
	if globals == nil {
		globals = newTable().node
	}
	if len(groups) > 0 && find(globals, extraMetrics) == nil {
		globals.Content = append(globals.Content, str(extraMetrics), nodeOf(true)) // vmagent always has them
		top.say(Note, nil, "", "vmagent's `scrape_timeout_seconds` is sent by `extra_scrape_metrics`; its `scrape_response_size_bytes` is called `scrape_body_size_bytes`, and its "+
			"`scrape_samples_limit` `scrape_sample_limit`")
	}
	if labels := find(globals, "external_labels"); !isNull(labels) && len(groups) > 0 {
		top.say(Note, labels, "global.external_labels", "a series that has such a label keeps it; vmagent calls it exported_NAME then")
	}
	limit := f.number("promscrape.maxScrapeSize", 0)
	for _, g := range groups {
		config := newTable()
		if len(globals.Content) > 0 {
			made := carry.take(globals, typeGlobal, "global")
			out.external = find(made, "external_labels")
			config.set("global", made)
		}
		settings := newTable().set("config", config.set("scrape_configs", g.jobs))
		settings.set(keepsIdentity, true)
		g.options.set(settings)
		if limit > 0 {
			settings.set("max_body_size", limit)
		}
		out.receive(scraper, settings)
	}
	if len(groups) > 0 {
		top.say(Note, nil, "", asNumbers)
		top.say(Note, nil, "", infoNote)
	}
	out.discoveries = carry.found
	return nil
}

// vmagentGlobal splits `global` into what Prometheus has too, and rules that come before those of each job.
func vmagentGlobal(top *section) (globals *yaml.Node, first map[string]*yaml.Node) {
	first = map[string]*yaml.Node{}
	global := top.sub("global")
	if global == nil || global.node.Kind != yaml.MappingNode {
		return nil, first
	}
	copied := *global.node
	copied.Content = append([]*yaml.Node{}, global.node.Content...)
	globals = &copied
	for _, key := range []string{"relabel_configs", "metric_relabel_configs"} {
		global.get(key)
		first[key] = remove(globals, key)
	}
	for _, key := range []string{"evaluation_interval", "query_log_file", "rule_query_offset"} {
		global.lose(Note, "it is about rules and queries, of which there are none", key)
		remove(globals, key)
	}
	for i := 0; i < len(global.node.Content); i += 2 { // the carrier reports what it does not know
		global.claimed[global.node.Content[i].Value] = true
	}
	return globals, first
}

// jobFiles reads lists of jobs, as vmagent's scrape_config_files are, and says which file each is from.
func jobFiles(in *input, pattern string) (jobs []*yaml.Node, files []string, err error) {
	names := in.given(pattern)
	if len(names) == 0 {
		names, err = in.source.Glob(in.join(pattern))
	}
	if err == nil && len(names) == 0 {
		err = errors.New("there is no such file; give it beside the others, under any directory")
	}
	for _, name := range names {
		text, err := in.source.Read(name)
		if err != nil {
			return jobs, files, err
		}
		root, err := parse(text)
		if err != nil {
			return jobs, files, err
		}
		if !isNull(root) && root.Kind != yaml.SequenceNode {
			return jobs, files, errors.New("it must be a list of jobs")
		}
		for _, job := range contents(root) {
			jobs, files = append(jobs, job), append(files, name)
		}
	}
	return jobs, files, err
}
