// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// What vmagent's jobs may set one by one, and here a receiver sets for all of its jobs.
type jobOptions struct {
	seriesLimit int64
	unmarked    bool
	aligned     bool
	offset      time.Duration
}

// A job is one of vmagent's on its way to be one of Prometheus'.
type vmJob struct {
	in      *input
	file    string
	path    string
	node    *yaml.Node
	rules   *ruler
	options jobOptions
}

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
	jobs := append([]*yaml.Node{}, contents(top.get("scrape_configs"))...)
	noteOwnMetrics(in, file, sequence(jobs...), "8429", "vmagent")
	var paths, files []string
	for i := range jobs {
		paths, files = append(paths, "scrape_configs["+strconv.Itoa(i)+"]"), append(files, file)
	}
	for _, pattern := range contents(top.get("scrape_config_files")) {
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
	limit := f.number("promscrape.maxScrapeSize", 0)
	for _, g := range groups {
		config := newTable()
		if globals != nil && len(globals.Content) > 0 {
			config.set("global", carry.take(globals, typeGlobal, "global"))
		}
		settings := newTable().set("config", config.set("scrape_configs", g.jobs))
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

func (o jobOptions) set(settings table) {
	if o.seriesLimit > 0 {
		settings.set("series_limit", o.seriesLimit)
	}
	if o.unmarked {
		settings.set("stale_markers", false)
	}
	if o.aligned {
		settings.set("align_scrapes", true)
	}
	if o.offset > 0 {
		settings.set("initial_scrape_offset", goDuration(o.offset))
	}
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
	names, err := in.source.Glob(in.join(pattern))
	if err == nil && len(names) == 0 {
		err = errors.New("there is no such file")
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
		for _, job := range contents(root) {
			jobs, files = append(jobs, job), append(files, name)
		}
	}
	return jobs, files, err
}

// vmagentKeys says of keys that only vmagent has, and that are left out, what to do about it.
var vmagentKeys = map[string]string{
	"yandexcloud_sd_configs":  "Prometheus cannot discover these: write targets to a file for `file_sd_configs`",
	"consulagent_sd_configs":  "Prometheus cannot discover these: `consul_sd_configs` asks the servers",
	"disable_keepalive":       "connections to targets are kept",
	"proxy_tls_config":        "the proxy is spoken to as its URL says",
	"proxy_basic_auth":        "write user and password into `proxy_url`",
	"proxy_authorization":     "`proxy_connect_header` sends a header to the proxy",
	"proxy_bearer_token":      "`proxy_connect_header` sends a header to the proxy",
	"proxy_bearer_token_file": "`proxy_connect_header` sends a header to the proxy",
	"proxy_oauth2":            "`proxy_connect_header` sends a header to the proxy",
}

// convert makes a job one of Prometheus', and finds out what its receiver has to set.
func (j *vmJob) convert(f *flags, globals *yaml.Node, first map[string]*yaml.Node) {
	copied := *j.node
	copied.Content = append([]*yaml.Node{}, j.node.Content...)
	j.node = &copied
	j.takeOptions(f, globals)
	for _, key := range []string{"relabel_debug", "metric_relabel_debug"} {
		if n := remove(j.node, key); n != nil {
			j.say(Note, n, key, "the console shows what rules do, step by step")
		}
	}
	if n := remove(j.node, "stream_parse"); n != nil {
		j.say(Note, n, "stream_parse", "pages beyond 256 KiB are always read in parts")
	}
	for _, sd := range contents(find(j.node, "kubernetes_sd_configs")) {
		if role := find(sd, "role"); role != nil && role.Value == "endpointslices" {
			role.Value = "endpointslice"
			j.say(Note, role, "kubernetes_sd_configs", "Prometheus calls the role endpointslice")
		}
	}
	if n := remove(j.node, "vultr_configs"); n != nil {
		j.set("vultr_sd_configs", n)
	}
	if n := remove(j.node, "max_scrape_size"); n != nil && find(j.node, "body_size_limit") == nil {
		if size, err := bytesOf(n.Value); err == nil {
			j.set("body_size_limit", str(strconv.FormatInt(size, 10)+"B"))
		} else {
			j.say(Lost, n, "max_scrape_size", err.Error())
		}
	}
	disabled := remove(j.node, "disable_compression")
	if find(j.node, "enable_compression") == nil && (disabled != nil && truth(disabled.Value) || f.yes("promscrape.disableCompression")) {
		j.set("enable_compression", nodeOf(false))
	}
	if find(j.node, "honor_timestamps") == nil { // vmagent's default is not Prometheus'
		j.set("honor_timestamps", nodeOf(false))
	}
	j.headers("headers", "http_headers")
	j.headers("proxy_headers", "proxy_connect_header")
	j.metricsPath()
	j.staticTargets(append(append([]*yaml.Node{}, contents(first["relabel_configs"])...), contents(find(j.node, "relabel_configs"))...))
	j.foundTargets()
	j.durations(globals)
	j.refresh(f)
	for _, key := range []string{"relabel_configs", "metric_relabel_configs"} {
		var made []*yaml.Node
		if before := first[key]; before != nil {
			made = j.rules.convert(contents(before), "global."+key)
		}
		own := remove(j.node, key)
		made = append(made, j.rules.convert(contents(own), j.path+"."+key)...)
		if len(made) > 0 {
			j.set(key, sequence(made...))
		}
	}
}

func (j *vmJob) set(key string, value *yaml.Node) {
	j.node.Content = append(j.node.Content, str(key), value)
}

func (j *vmJob) say(kind Outcome, at *yaml.Node, key, text string) {
	f := Finding{Kind: kind, File: j.file, Path: j.path + "." + key, Text: text}
	if at != nil {
		f.Line = at.Line
	}
	j.in.report.add(f)
}

func (j *vmJob) takeOptions(f *flags, globals *yaml.Node) {
	j.options.seriesLimit = f.number("promscrape.seriesLimitPerTarget", 0)
	if n := remove(j.node, "series_limit"); n != nil {
		limit, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil {
			j.say(Lost, n, "series_limit", "it must be a whole number")
		}
		j.options.seriesLimit = limit
	}
	j.options.unmarked = f.yes("promscrape.noStaleMarkers")
	if n := remove(j.node, "no_stale_markers"); n != nil {
		j.options.unmarked = truth(n.Value)
	}
	interval := time.Minute
	for _, from := range []*yaml.Node{globals, j.node} {
		if n := find(from, "scrape_interval"); n != nil {
			if d, err := duration(n.Value); err == nil && d > 0 {
				interval = d
			}
		}
	}
	if n := remove(j.node, "scrape_align_interval"); n != nil {
		j.options.aligned = true
		if d, err := duration(n.Value); err != nil || d <= 0 || d%interval != 0 && interval%d != 0 {
			j.say(Changed, n, "scrape_align_interval", "scrapes are at multiples of their own interval")
		}
	}
	if n := remove(j.node, "scrape_offset"); n != nil {
		d, err := duration(n.Value)
		if err != nil {
			j.say(Lost, n, "scrape_offset", err.Error())
		}
		j.options.aligned, j.options.offset = true, d
	}
}

// headers converts lists of "name: value".
func (j *vmJob) headers(from, to string) {
	list := remove(j.node, from)
	if list == nil {
		return
	}
	if from == "proxy_headers" && find(j.node, "proxy_url") == nil {
		j.say(Note, list, from, "there is no `proxy_url`, so they had no effect")
		return
	}
	made := newTable()
	for _, item := range contents(list) {
		name, value, ok := strings.Cut(item.Value, ":")
		if !ok {
			j.say(Lost, item, from, "a header must be `name: value`")
			continue
		}
		values := sequence(str(strings.TrimSpace(value)))
		values.Style = yaml.FlowStyle
		if to == "http_headers" {
			made.set(strings.TrimSpace(name), newTable().set("values", values))
		} else {
			made.set(strings.TrimSpace(name), values)
		}
	}
	j.set(to, made.node)
}

// metricsPath moves a query out of a path, where Prometheus would take it for a part of the path.
func (j *vmJob) metricsPath() {
	n := find(j.node, "metrics_path")
	if n == nil {
		return
	}
	path, query, ok := strings.Cut(n.Value, "?")
	if !ok {
		return
	}
	values, err := url.ParseQuery(query)
	if err != nil || find(j.node, "params") != nil {
		j.say(Lost, n, "metrics_path", "write its query under `params`")
	} else {
		params := newTable()
		for pair := range strings.SplitSeq(query, "&") {
			key, _, _ := strings.Cut(pair, "=")
			if key, err = url.QueryUnescape(key); err == nil && !params.has(key) {
				params.set(key, values[key])
			}
		}
		j.set("params", params.node)
	}
	copied := *n
	copied.Value = path
	remove(j.node, "metrics_path")
	j.set("metrics_path", &copied)
}

// staticTargets makes targets that are URLs, which vmagent takes, groups of their own with labels. Where a rule of the job writes an address,
// they are for that rule to read, as those of probes are.
func (j *vmJob) staticTargets(rules []*yaml.Node) {
	if slices.ContainsFunc(rules, func(rule *yaml.Node) bool {
		to := find(rule, "target_label")
		return to != nil && to.Value == "__address__"
	}) {
		return
	}
	groups := remove(j.node, "static_configs")
	if groups == nil {
		return
	}
	read := slices.ContainsFunc(rules, func(rule *yaml.Node) bool { return says(rule, "__address__", "__scheme__") })
	named := slices.ContainsFunc(rules, func(rule *yaml.Node) bool { return says(rule, "instance", "__scheme__") })
	made := sequence()
	made.HeadComment, made.FootComment = groups.HeadComment, groups.FootComment
	for _, group := range contents(groups) {
		plain := *group
		plain.Content = append([]*yaml.Node{}, group.Content...)
		list := remove(&plain, "targets")
		kept := sequence()
		if list != nil {
			copied := *list
			copied.Content = nil
			kept = &copied
		}
		var urls []*yaml.Node
		for _, target := range contents(list) {
			switch {
			case strings.Contains(target.Value, "/"):
				urls = append(urls, target)
				if read {
					j.say(Changed, target, "static_configs", "rules find the host and port of "+target.Value+" in `__address__`, and the rest in `__scheme__` and `__metrics_path__`")
				}
			case !named && !strings.ContainsAny(target.Value, ":%") && find(find(group, "labels"), "instance") == nil:
				urls = append(urls, target)
			default:
				kept.Content = append(kept.Content, target)
			}
		}
		if len(kept.Content) > 0 || len(urls) == 0 {
			plain.Content = append([]*yaml.Node{str("targets"), kept}, plain.Content...)
			made.Content = append(made.Content, &plain)
		}
		for _, target := range urls {
			made.Content = append(made.Content, j.urlTarget(target, find(group, "labels")))
		}
	}
	j.set("static_configs", made)
}

func (j *vmJob) urlTarget(target, labels *yaml.Node) *yaml.Node {
	text := target.Value
	if !strings.Contains(text, "://") {
		text = "//" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		j.say(Lost, target, "static_configs", err.Error())
		u = &url.URL{Host: target.Value}
	}
	own := newTable()
	for i := 0; labels != nil && i+1 < len(labels.Content); i += 2 {
		own.set(labels.Content[i].Value, labels.Content[i+1])
	}
	address := u.Host
	port := map[string]string{"http": ":80", "https": ":443"}
	switch scheme := find(j.node, "scheme"); {
	case u.Scheme != "":
		own.set("__scheme__", u.Scheme)
		if u.Port() == "" {
			address += port[u.Scheme]
		}
	case u.Port() == "" && !own.has("instance"): // vmagent tells the port there, and asks without one
		if scheme == nil {
			scheme = str("http")
		}
		own.set("instance", address+port[scheme.Value])
	}
	if u.Path != "" {
		own.set("__metrics_path__", u.Path)
	}
	for key, values := range u.Query() {
		own.set("__param_"+key, values[0])
		if len(values) > 1 {
			j.say(Lost, target, "static_configs", "a parameter of a target has one value")
		}
	}
	list := sequence(str(address))
	list.Style = yaml.FlowStyle
	return newTable().set("targets", list).set("labels", own).node
}

// durations makes times such as Prometheus reads: whole numbers, and no timeout beyond its interval.
func (j *vmJob) durations(globals *yaml.Node) {
	interval := time.Minute
	for _, from := range []*yaml.Node{globals, j.node} {
		for _, key := range []string{"scrape_interval", "scrape_timeout"} {
			n := find(from, key)
			if n == nil {
				continue
			}
			d, err := duration(n.Value)
			if err != nil {
				continue // the receiver says so
			}
			if key == "scrape_interval" {
				interval = d
			} else if d > interval {
				j.say(Note, n, key, "it is as long as the interval, as vmagent has it")
				d = interval
				n.Value = promDuration(d)
			}
			if strings.Contains(n.Value, ".") {
				n.Value = promDuration(d)
			}
		}
	}
}

// says tells whether a part of a node is, or has in it, one of some words.
func says(n *yaml.Node, words ...string) bool {
	if n.Kind == yaml.ScalarNode && slices.ContainsFunc(words, func(word string) bool { return strings.Contains(n.Value, word) }) {
		return true
	}
	return slices.ContainsFunc(n.Content, func(part *yaml.Node) bool { return says(part, words...) })
}

// foundTargets takes out of service discovery what vmagent alone finds.
func (j *vmJob) foundTargets() {
	if lists := find(j.node, "file_sd_configs"); lists != nil {
		lists.Content = slices.DeleteFunc(lists.Content, func(sd *yaml.Node) bool {
			files := find(sd, "files")
			if files == nil {
				return false
			}
			files.Content = slices.DeleteFunc(files.Content, func(file *yaml.Node) bool {
				elsewhere := strings.Contains(file.Value, "://")
				if elsewhere {
					j.say(Lost, file, "file_sd_configs", "files are on this machine: `http_sd_configs` asks a server, for JSON")
				}
				return elsewhere
			})
			return len(files.Content) == 0
		})
	}
	if find(j.node, "file_sd_configs") != nil || find(j.node, "http_sd_configs") != nil {
		j.in.report.add(Finding{Kind: Note, Text: "targets that are found in files and answers must be host:port: vmagent takes URLs there, too"})
	}
	zones := find(j.node, "gce_sd_configs")
	if zones == nil {
		return
	}
	made := sequence()
	for _, sd := range contents(zones) {
		zone := find(sd, "zone")
		if zone == nil || zone.Kind != yaml.SequenceNode {
			made.Content = append(made.Content, sd)
			continue
		}
		for _, one := range zone.Content {
			each := *sd
			each.Content = append([]*yaml.Node{}, sd.Content...)
			remove(&each, "zone")
			each.Content = append(each.Content, str("zone"), one)
			made.Content = append(made.Content, &each)
		}
	}
	remove(j.node, "gce_sd_configs")
	j.set("gce_sd_configs", made)
}

func promDuration(d time.Duration) string {
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return strconv.FormatInt(int64(d/time.Millisecond), 10) + "ms"
}

var checkInterval = expression(`^promscrape\.([a-z0-9]+)SDCheckInterval$`)

// refresh puts intervals of discovery, which are flags of vmagent, where Prometheus has them.
func (j *vmJob) refresh(f *flags) {
	for _, given := range f.all {
		match := checkInterval().FindStringSubmatch(given.name)
		if match == nil {
			continue
		}
		f.claimed[given.name] = true
		key := match[1] + discoveries
		if match[1] == "kubernetes" {
			f.say(Note, given.name, "changes are watched, and known at once")
			continue
		}
		for _, sd := range contents(find(j.node, key)) {
			if sd.Kind == yaml.MappingNode && find(sd, "refresh_interval") == nil {
				sd.Content = append(sd.Content, str("refresh_interval"), str(given.value))
			}
		}
	}
}
