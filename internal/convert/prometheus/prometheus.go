// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheus converts a prometheus.yml.
package prometheus

import (
	"net"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/output"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// nowhere is the destination if the configuration has none.
const nowhere = "${env:GODWIT_REMOTE_WRITE_URL:-http://127.0.0.1:9090/api/v1/write}"

// Convert converts a prometheus.yml. foreign reports whether a key of a job is vmagent's.
func Convert(in *input.Input, foreign func(key string) bool) ([]byte, error) {
	root, err := document.Parse(in.Text)
	if err != nil {
		return nil, err
	}
	if document.IsNull(root) {
		return nil, input.ErrNothing
	}
	top := in.Section(in.Name(), "", root)
	lose(top)
	for _, key := range []string{"global", "scrape_configs", "scrape_config_files", "remote_write"} {
		if n := document.Find(root, key); n != nil {
			noteVariables(in, n, key, key)
		}
	}
	carry := promconfig.NewCarrier(in, top.File)
	carry.Unknown = func(key string) string {
		if foreign(key) {
			return "it is vmagent's: `--from vmagent` converts it"
		}
		return ""
	}
	out := output.New()
	globals := globalOf(top, carry)
	native := scrape(top, out, globals, carry)
	destinations := top.List("remote_write")
	if len(out.From) == 0 {
		if len(destinations) == 0 {
			return nil, input.ErrNothing
		}
		top.Say(report.Changed, nil, "scrape_configs", "there are no jobs: the result takes remote write at 127.0.0.1:9090/api/v1/write, as Prometheus does with --web.enable-remote-write-receiver")
		out.Receive("remotewrite", document.NewTable().Set("endpoint", "127.0.0.1:9090"))
	}
	external := document.Find(globals, "external_labels")
	send(out, destinations, native, external)
	if len(destinations) == 0 {
		top.Say(report.Changed, nil, "remote_write", "there is none, and a collector keeps nothing: the result writes to GODWIT_REMOTE_WRITE_URL, or to a Prometheus "+
			"with --web.enable-remote-write-receiver at 127.0.0.1:9090")
		settings := document.NewTable().Set("endpoint", nowhere)
		promconfig.ExternalLabels(settings, external)
		out.Export("", settings)
	}
	out.Discoveries = carry.Found
	out.Finish()
	return out.Write(in, top.File)
}

// lose reports the sections that do not concern scraping or sending.
func lose(top *input.Section) {
	top.Lose(report.Lost, report.NoRules, "rule_files", "alerting")
	top.Lose(report.Lost, report.NoAnswers, "remote_read", "storage")
	top.Lose(report.Lost, "a collector's own traces are configured under `service::telemetry::traces`", "tracing")
	top.Lose(report.Lost, "a collector takes OTLP by its receiver `otlp`: add it to the pipeline; what `otlp` says of names and attributes is said under the exporter "+
		"(`translation_strategy`, `promote_resource_attributes`)", "otlp")
	top.Lose(report.Lost, "the extension `runtimeprofile` sets the garbage collector by the memory there is", "runtime")
}

// scrape makes the receiver, if there are jobs, and reports whether it may scrape native histograms.
func scrape(top *input.Section, out *output.Output, globals *yaml.Node, carry *promconfig.Carrier) (native bool) {
	in, file := top.In, top.File
	jobs, files := top.ListNode("scrape_configs"), top.ListNode("scrape_config_files")
	if len(document.Contents(jobs)) == 0 && files == nil {
		return scrapesNative(globals, jobs)
	}
	promconfig.NoteLabels(in, file, "scrape_configs", jobs)
	config := document.NewTable()
	if globals != nil {
		promconfig.NoteLabels(in, file, "global", globals)
		if kept := promconfig.WithoutExternalLabels(globals); len(kept.Content) > 0 {
			config.Set("global", kept)
		}
	}
	if jobs != nil {
		promconfig.NoteOwnMetrics(in, file, jobs, "9090", "Prometheus")
		notePortless(in, file, jobs)
		for i, job := range jobs.Content {
			promconfig.NoteLoneBuckets(in, file, "scrape_configs["+strconv.Itoa(i)+"]", job)
		}
		config.Set("scrape_configs", carry.Take(jobs, "[]"+promconfig.TypeJob, "scrape_configs"))
	}
	if files != nil {
		config.Set("scrape_config_files", carry.Value(files, "[]string", "scrape_config_files", "scrape_config_files"))
	}
	out.Receive(promconfig.Scraper, document.NewTable().Set("config", config).Set(promconfig.KeepsIdentity, true))
	top.Say(report.Note, nil, "", promconfig.AsNumbers)
	top.Say(report.Note, nil, "", promconfig.InfoNote)
	return scrapesNative(globals, jobs)
}

// send makes an exporter for each destination.
func send(out *output.Output, destinations []*input.Section, native bool, labels *yaml.Node) {
	for _, d := range destinations {
		settings, name := remoteWrite(out, d, native)
		promconfig.ExternalLabels(settings, labels)
		out.Export(name, settings)
	}
}

// globalOf copies the global keys that concern scraping, nil if there are none.
func globalOf(top *input.Section, carry *promconfig.Carrier) *yaml.Node {
	global := top.Sub("global")
	if global == nil {
		return nil
	}
	global.Lose(report.Note, "it is about rules and queries, of which there are none", "evaluation_interval", "rule_query_offset", "query_log_file")
	kept := *global.Node
	kept.Content = nil
	for i := 0; i+1 < len(global.Node.Content); i += 2 {
		key := global.Node.Content[i]
		if _, known := promconfig.Keys()[promconfig.TypeGlobal][key.Value]; !known || global.IsClaimed(key.Value) {
			continue
		}
		global.Claim(key.Value)
		kept.Content = append(kept.Content, key, global.Node.Content[i+1])
	}
	if len(kept.Content) == 0 {
		return nil
	}
	return carry.Take(&kept, promconfig.TypeGlobal, "global")
}

// scrapesNative reports whether native histograms may be scraped.
func scrapesNative(globals, jobs *yaml.Node) bool {
	const key = "scrape_native_histograms"
	is := func(n *yaml.Node) bool { v := document.Find(n, key); return v != nil && document.Truth(v.Value) }
	if is(globals) {
		return true
	}
	if jobs == nil {
		return false
	}
	return slices.ContainsFunc(jobs.Content, is)
}

// notePortless reports targets without a port, to which Prometheus 2 added one. Jobs with rules that write the address
// or the instance are skipped.
func notePortless(in *input.Input, file string, jobs *yaml.Node) {
	for i, job := range jobs.Content {
		if slices.ContainsFunc(document.Contents(document.Find(job, "relabel_configs")), func(rule *yaml.Node) bool {
			to := document.Find(rule, "target_label")
			return to != nil && (to.Value == "__address__" || to.Value == "instance")
		}) {
			continue
		}
		for _, group := range document.Contents(document.Find(job, "static_configs")) {
			for _, target := range document.Contents(document.Find(group, "targets")) {
				_, _, err := net.SplitHostPort(target.Value)
				if err == nil || target.Value == "" || document.Find(document.Find(group, "labels"), "instance") != nil {
					continue
				}
				in.Report.Add(report.Finding{
					Kind: report.Note, File: file, Line: target.Line, Path: "scrape_configs[" + strconv.Itoa(i) + "]",
					Text: target.Value + " has no port, and neither has its `instance`, as with Prometheus 3: Prometheus 2 adds `:80`, or `:443`",
				})
			}
		}
	}
}
