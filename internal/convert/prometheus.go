// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The texts of findings that several converters have.
const (
	noRules   = "rules are evaluated by the server that the series go to: move it there"
	noAnswers = "a collector answers no queries and stores nothing: leave it with the server that does"
	// asNumbers and targetInfo are about every configuration with jobs.
	asNumbers = "bounds of classic buckets and quantiles are written as numbers, `le=\"2\"` where a page or Prometheus 3 has `le=\"2.0\"`: see docs/migrate-from-prometheus.md"
	infoNote  = "a series `target_info` is sent for each target, once a minute; `target_info: {enabled: false}` under the exporter leaves it out"
	// nowhere is where series go to if nobody has said so.
	nowhere = "${env:GODWIT_REMOTE_WRITE_URL:-http://127.0.0.1:9090/api/v1/write}"
)

// The exporter and the receivers that are written.
const (
	scraper  = "fastprometheus"
	exporter = "remotewrite"
	// keepsIdentity is the receiver's key for job and instance that are the job's, whatever a page says of itself.
	keepsIdentity = "keep_job_and_instance"
)

func convertPrometheus(in *input) ([]byte, error) {
	root, err := parse(in.first)
	if err != nil {
		return nil, err
	}
	if isNull(root) {
		return nil, errNothing
	}
	file := in.name()
	top := in.section(file, "", root)
	top.lose(Lost, noRules, "rule_files", "alerting")
	top.lose(Lost, noAnswers, "remote_read", "storage")
	top.lose(Lost, "a collector's own traces are configured under `service::telemetry::traces`", "tracing")
	top.lose(Lost, "a collector takes OTLP by its receiver `otlp`: add it to the pipeline; what `otlp` says of names and attributes is said under the exporter "+
		"(`translation_strategy`, `promote_resource_attributes`)", "otlp")
	top.lose(Lost, "the extension `runtimeprofile` sets the garbage collector by the memory there is", "runtime")

	for _, key := range []string{"global", "scrape_configs", "scrape_config_files", "remote_write"} {
		if n := find(root, key); n != nil {
			in.unfilled(n, key, key)
		}
	}
	out := newOutput()
	carry := in.carrier(file)
	carry.unknown = func(key string) string {
		if slices.Contains(vmagentJobKeys, key) {
			return "it is vmagent's: `--from vmagent` converts it"
		}
		return ""
	}
	globals := prometheusGlobal(top, carry)
	jobs, files := top.listNode("scrape_configs"), top.listNode("scrape_config_files")
	if jobs != nil && len(jobs.Content) > 0 || files != nil {
		config := newTable()
		if globals != nil {
			config.set("global", globals)
		}
		if jobs != nil {
			noteOwnMetrics(in, file, jobs, "9090", "Prometheus")
			notePortless(in, file, jobs)
			for i, job := range jobs.Content {
				noteLoneBuckets(in, file, "scrape_configs["+strconv.Itoa(i)+"]", job)
			}
			config.set("scrape_configs", carry.take(jobs, "[]"+typeJob, "scrape_configs"))
		}
		if files != nil {
			config.set("scrape_config_files", carry.value(files, "[]string", "scrape_config_files", "scrape_config_files"))
		}
		out.receive(scraper, newTable().set("config", config).set(keepsIdentity, true))
	}
	native := scrapesNative(globals, jobs)
	destinations := top.list("remote_write")
	switch {
	case len(out.from) == 0 && len(destinations) == 0:
		return nil, errNothing
	case len(out.from) == 0:
		top.say(Changed, nil, "scrape_configs", "there are no jobs: the result takes remote write at 127.0.0.1:9090/api/v1/write, as Prometheus does with --web.enable-remote-write-receiver")
		out.receive("remotewrite", newTable().set("endpoint", "127.0.0.1:9090"))
	default:
		top.say(Note, nil, "", asNumbers)
		top.say(Note, nil, "", infoNote)
	}
	for _, d := range destinations {
		settings, name := remoteWrite(out, d, native)
		externalLabels(settings, find(globals, "external_labels"))
		out.export(name, settings)
	}
	if len(destinations) == 0 {
		top.say(Changed, nil, "remote_write", "there is none, and a collector keeps nothing: the result writes to GODWIT_REMOTE_WRITE_URL, or to a Prometheus "+
			"with --web.enable-remote-write-receiver at 127.0.0.1:9090")
		out.export("", newTable().set("endpoint", nowhere))
	}
	out.discoveries = carry.found
	finish(out)
	return out.write(in, file)
}

// finish adds what every result has.
func finish(out *output) {
	out.protect()
	out.extend("console", "", newTable())
}

// prometheusGlobal copies what is about scraping, nil if there is nothing.
func prometheusGlobal(top *section, carry *carrier) *yaml.Node {
	global := top.sub("global")
	if global == nil {
		return nil
	}
	global.lose(Note, "it is about rules and queries, of which there are none", "evaluation_interval", "rule_query_offset", "query_log_file")
	kept := *global.node
	kept.Content = nil
	for i := 0; i+1 < len(global.node.Content); i += 2 {
		key := global.node.Content[i]
		if _, known := keys()[typeGlobal][key.Value]; !known || global.claimed[key.Value] {
			continue
		}
		global.claimed[key.Value] = true
		kept.Content = append(kept.Content, key, global.node.Content[i+1])
	}
	if len(kept.Content) == 0 {
		return nil
	}
	return carry.take(&kept, typeGlobal, "global")
}

// externalLabels gives an exporter the labels that the receiver gives to what it scrapes: target_info, which the exporter makes, has them from there, and so has what
// comes from elsewhere. Series that have them stay as they are.
func externalLabels(settings table, labels *yaml.Node) {
	if isNull(labels) {
		return
	}
	copied := *labels
	copied.Content = nil
	for i, n := range labels.Content {
		c := *n
		if i%2 == 1 { // Prometheus has variables there, too
			c.Value = environment(c.Value)
		}
		copied.Content = append(copied.Content, &c)
	}
	settings.set("external_labels", &copied)
}

// environment makes the variables of Prometheus, $NAME and ${NAME}, in an escaped text those of a collector.
func environment(escaped string) string {
	var b strings.Builder
	for rest := escaped; rest != ""; {
		before, after, found := strings.Cut(rest, "$$")
		b.WriteString(before)
		if !found {
			break
		}
		if strings.HasPrefix(after, "$$") { // an escaped dollar of Prometheus
			b.WriteString("$$")
			rest = after[2:]
			continue
		}
		inner := strings.HasPrefix(after, "{")
		name := strings.TrimPrefix(after, "{")
		end := strings.IndexFunc(name, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		})
		if end < 0 {
			end = len(name)
		}
		rest = name[end:]
		if inner {
			rest = strings.TrimPrefix(rest, "}")
		}
		b.WriteString("${env:" + name[:end] + "}")
	}
	return b.String()
}

// scrapesNative tells whether native histograms may be scraped.
func scrapesNative(globals, jobs *yaml.Node) bool {
	const key = "scrape_native_histograms"
	is := func(n *yaml.Node) bool { v := find(n, key); return v != nil && truth(v.Value) }
	if is(globals) {
		return true
	}
	if jobs == nil {
		return false
	}
	return slices.ContainsFunc(jobs.Content, is)
}

//go:noinline
func truth(text string) bool {
	text = strings.ToLower(text)
	if plain, ok := truths[text]; ok {
		text = plain
	}
	yes, _ := strconv.ParseBool(text)
	return yes
}

// noteOwnMetrics finds targets that were the process itself, which is another one now.
func noteOwnMetrics(in *input, file string, jobs *yaml.Node, port, what string) {
	for i, job := range jobs.Content {
		for _, group := range contents(find(job, "static_configs")) {
			for _, target := range contents(find(group, "targets")) {
				host, at, err := net.SplitHostPort(target.Value)
				if err != nil || at != port || host != "localhost" && host != "127.0.0.1" {
					continue
				}
				in.report.add(Finding{
					Kind: Changed, File: file, Line: target.Line, Path: "scrape_configs[" + strconv.Itoa(i) + "]",
					Text: target.Value + " is " + what + "'s own port: the collector's own metrics are at 127.0.0.1:8888",
				})
			}
		}
	}
}

// notePortless tells of targets without a port, which Prometheus 2 gave one. Where rules write the address or the instance, these say what it is.
func notePortless(in *input, file string, jobs *yaml.Node) {
	for i, job := range jobs.Content {
		if slices.ContainsFunc(contents(find(job, "relabel_configs")), func(rule *yaml.Node) bool {
			to := find(rule, "target_label")
			return to != nil && (to.Value == "__address__" || to.Value == "instance")
		}) {
			continue
		}
		for _, group := range contents(find(job, "static_configs")) {
			for _, target := range contents(find(group, "targets")) {
				_, _, err := net.SplitHostPort(target.Value)
				if err == nil || target.Value == "" || find(find(group, "labels"), "instance") != nil {
					continue
				}
				in.report.add(Finding{
					Kind: Note, File: file, Line: target.Line, Path: "scrape_configs[" + strconv.Itoa(i) + "]",
					Text: target.Value + " has no port, and neither has its `instance`, as with Prometheus 3: Prometheus 2 adds `:80`, or `:443`",
				})
			}
		}
	}
}

// noteLoneBuckets tells of rules that keep the buckets of a histogram and not its count, of which the receiver makes nothing.
func noteLoneBuckets(in *input, file, path string, job *yaml.Node) {
	const bucket = "_bucket"
	for _, rule := range contents(find(job, "metric_relabel_configs")) {
		action, from, text := find(rule, "action"), contents(find(rule, "source_labels")), find(rule, "regex")
		if action == nil || action.Value != "keep" || len(from) != 1 || from[0].Value != "__name__" || text == nil {
			continue
		}
		kept, err := regexp.Compile("^(?s:" + text.Value + ")$")
		if err != nil {
			continue
		}
		var lone []string
		for name := range strings.FieldsFuncSeq(text.Value, func(r rune) bool { return strings.ContainsRune("|()", r) }) {
			if histogram, ok := strings.CutSuffix(name, bucket); ok && plainMetric().MatchString(name) && !kept.MatchString(histogram+"_count") {
				lone = append(lone, name)
			}
		}
		if len(lone) > 0 {
			in.report.add(Finding{
				Kind: Changed, File: file, Line: text.Line, Path: path + ".metric_relabel_configs",
				Text: "a histogram is sent if its count is there: keep the `_count` of " + strings.Join(lone, ", ") + " too, or have the rule under `write_relabel_configs` of the exporter",
			})
		}
	}
}

var plainMetric = expression(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

//go:noinline
func contents(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}
