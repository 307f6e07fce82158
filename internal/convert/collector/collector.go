// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package collector converts the configuration of another collector, most of which stays the same.
package collector

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/components"
	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/output"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// Convert converts the configuration of another collector. It stays the same except for what is outdated, or not
// available here.
func Convert(in *input.Input) ([]byte, error) {
	root, err := document.Parse(in.Text)
	if err != nil {
		return nil, err
	}
	if document.IsNull(root) {
		return nil, input.ErrNothing
	}
	file := in.Name()
	top := in.Section(file, "", root)
	c := &collector{in: in, file: file, root: root, found: map[string]bool{}, becomes: "it is "}
	c.bareVariables(root, "", "")
	for _, kind := range components.Kinds {
		c.components(kind, top.Sub(kind))
	}
	c.service(top.Sub("service"))
	for i := 0; i+1 < len(root.Content); {
		key := root.Content[i]
		if top.IsClaimed(key.Value) {
			i += 2
			continue
		}
		top.Claim(key.Value)
		top.Say(report.Lost, key, key.Value, "a collector has no such section: it is left out, and what YAML took from it is where it was used")
		document.Remove(root, key.Value)
	}
	for _, kind := range components.Kinds {
		components.Check(in, kind, document.Find(root, kind), file)
	}
	for _, name := range slices.Sorted(maps.Keys(c.found)) {
		if text := components.Missing(in.Distribution, components.Discovery, name); text != "" {
			in.Report.Add(report.Finding{Kind: report.Needs, File: file, Path: name + promconfig.Discoveries, Text: text})
		}
	}
	return document.Encode(root)
}

// A collector is another collector's configuration that is being converted.
type collector struct {
	in    *input.Input
	file  string
	root  *yaml.Node
	found map[string]bool
	// becomes returns how a variable in the old syntax is written now.
	becomes string
}

// components converts the components of one kind. Their settings are kept, except for known differences.
func (c *collector) components(kind string, s *input.Section) {
	if s == nil || s.Node.Kind != yaml.MappingNode {
		return
	}
	var ids []string
	for i := 0; i+1 < len(s.Node.Content); i += 2 {
		ids = append(ids, s.Node.Content[i].Value)
	}
	for _, id := range ids {
		of := components.TypeOf(id)
		settings := s.Get(id)
		if now := components.Deprecated[kind+" "+of]; now != "" {
			s.Say(report.Note, settings, id, "the type is called `"+now+"` now, and the old name goes on working")
		}
		switch kind + " " + of {
		case "extensions memory_ballast":
			s.Say(report.Note, settings, id, "it is left out: the extension `runtimeprofile` sets the garbage collector by the memory there is")
			document.Remove(s.Node, id)
			c.drop(id)
		case "processors memory_limiter":
			if n := document.Remove(settings, "ballast_size_mib"); n != nil {
				s.Say(report.Note, n, id+".ballast_size_mib", "collectors have no ballast any more, and it is left out")
			}
		case "exporters logging":
			s.Say(report.Changed, settings, id, "the exporter is called `debug` now")
			c.logging(s, id, settings)
		case "receivers prometheus_remote_write":
			s.Say(report.Changed, settings, id, "the receiver is called `remotewrite` here")
			c.rename(kind, s, id, "remotewrite")
		case "receivers prometheus":
			c.prometheus(s, id, settings)
		case "receivers kafka", "exporters kafka":
			c.kafka(kind, s, id, settings)
		case "exporters prometheusremotewrite", "exporters prometheus_remote_write":
			c.remoteWrite(s, id, settings)
		}
	}
}

// drop takes an extension out of the service.
func (c *collector) drop(id string) {
	list := document.Find(document.Find(c.root, "service"), "extensions")
	if list == nil {
		return
	}
	list.Content = slices.DeleteFunc(list.Content, func(n *yaml.Node) bool { return n.Value == id })
}

// logging turns an exporter `logging` into one named `debug`.
func (c *collector) logging(s *input.Section, was string, settings *yaml.Node) {
	c.rename("exporters", s, was, "debug")
	if level := document.Remove(settings, "loglevel"); level != nil {
		verbosity := map[string]string{"debug": "detailed", "info": "normal"}[strings.ToLower(level.Value)]
		if verbosity == "" {
			verbosity = "basic"
		}
		settings.Content = append(settings.Content, document.StringNode("verbosity"), document.StringNode(verbosity))
	}
}

// rename gives a component another type, wherever it is referred to.
func (c *collector) rename(kind string, s *input.Section, was, to string) {
	_, name, _ := strings.Cut(was, "/")
	now := output.ID(document.TableOf(s.Node), to, name) // there may already be one with that name
	rename(s.Node, was, now)
	s.Claim(now)
	pipelines := document.Find(document.Find(c.root, "service"), "pipelines")
	if pipelines == nil {
		return
	}
	for _, pipeline := range pipelines.Content {
		for _, used := range document.Contents(document.Find(pipeline, kind)) {
			if used.Value == was {
				used.Value = now
			}
		}
	}
}

func rename(n *yaml.Node, from, to string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == from {
			n.Content[i].Value = to
		}
	}
}

// prometheus converts the settings of contrib's receiver, of the current release or earlier ones.
func (c *collector) prometheus(s *input.Section, id string, settings *yaml.Node) {
	for _, key := range []string{"use_start_time_metric", "start_time_metric_regex"} {
		if n := document.Remove(settings, key); n != nil && n.Value != "" && n.Value != "false" {
			s.Say(report.Lost, n, id+"."+key, "contrib has it no more: the processor `metric_start_time` does so with `strategy: start_time_metric`, and is in the distribution godwit")
		}
	}
	for _, key := range []string{"buffer_period", "buffer_count"} {
		if n := document.Remove(settings, key); n != nil {
			s.Say(report.Note, n, id+"."+key, "contrib has it no more, and it had no effect")
		}
	}
	config := document.Find(settings, "config")
	if n := document.Remove(settings, "report_extra_scrape_metrics"); n != nil {
		s.Say(report.Note, n, id+".report_extra_scrape_metrics", "it is Prometheus' `extra_scrape_metrics` now, under `config::global`")
		if config == nil && document.Truth(n.Value) && settings.Kind == yaml.MappingNode { // jobs come from an allocator
			config = document.NewTable().Node
			settings.Content = append(settings.Content, document.StringNode("config"), config)
		}
		if config != nil && document.Truth(n.Value) {
			global := document.Find(config, "global")
			if document.IsNull(global) {
				global = document.NewTable().Node
				document.Remove(config, "global")
				config.Content = append([]*yaml.Node{document.StringNode("global"), global}, config.Content...)
			}
			if document.Find(global, "extra_scrape_metrics") == nil {
				global.Content = append(global.Content, document.StringNode("extra_scrape_metrics"), document.NodeOf(true))
			}
		}
	}
	c.allocated(s, id, settings, config)
	if config == nil || config.Kind != yaml.MappingNode {
		return
	}
	carry := promconfig.NewCarrier(c.in, c.file)
	carry.Plain, carry.Found = true, c.found
	path := s.Join(id) + ".config"
	made := *config
	made.Content = nil
	for i := 0; i+1 < len(config.Content); i += 2 {
		key, value := config.Content[i], config.Content[i+1]
		of := map[string]string{"global": promconfig.TypeGlobal, "scrape_configs": "[]" + promconfig.TypeJob, "scrape_config_files": "[]string"}[key.Value]
		if of == "" {
			s.Say(report.Lost, key, id+".config."+key.Value, "the receiver only scrapes: "+report.NoRules)
			continue
		}
		made.Content = append(made.Content, key, carry.Value(value, of, path+"."+key.Value, key.Value))
	}
	*config = made
}

// remoteWrite reports what keys of contrib's exporter correspond to here.
func (c *collector) remoteWrite(s *input.Section, id string, settings *yaml.Node) {
	say := func(kind report.Outcome, key, text string) {
		if n := document.Find(settings, key); n != nil {
			s.Say(kind, n, id+"."+key, text)
		}
	}
	if n := document.Remove(settings, "export_created_metric"); n != nil {
		s.Say(report.Lost, n, id+".export_created_metric", "contrib has it no more: 2.0 carries start timestamps (`protobuf_message: auto`)")
	}
	say(report.Changed, "wal", "its `directory` holds the queue of requests; a log that contrib's exporter left there is not read")
	say(report.Changed, "max_batch_request_parallelism", "it is the most shards; the order of each series is kept")
	if queue := document.Find(settings, "remote_write_queue"); queue != nil {
		if n := document.Find(queue, "num_consumers"); n != nil {
			s.Say(report.Changed, n, id+".remote_write_queue.num_consumers", "it is the most shards; the order of each series is kept")
		}
		if n := document.Find(queue, "queue_size"); n != nil {
			s.Say(report.Changed, n, id+".remote_write_queue.queue_size", "batches of the pipeline, as there, and 64 MiB of compressed requests")
		}
	}
	if auth := document.Find(settings, "auth"); auth != nil {
		if n := document.Find(auth, "authenticator"); n != nil && components.TypeOf(n.Value) == "headers_setter" {
			s.Say(report.Changed, n, id+".auth", "`from_context` finds the keys of `include_metadata_keys`, and no others; `from_attribute` finds nothing")
		}
	}
	s.Say(report.Note, settings, id, "it sends what it sent there; `protobuf_message: auto` takes 2.0 and zstd where the destination does, for a fraction of the bytes")
}

// service converts what no longer belongs under `service`.
func (c *collector) service(s *input.Section) {
	if s == nil {
		return
	}
	for i := 0; i < len(s.Node.Content); i += 2 {
		s.Claim(s.Node.Content[i].Value)
	}
	metrics := document.Find(document.Find(s.Node, "telemetry"), "metrics")
	address := document.Find(metrics, "address")
	if address == nil {
		return
	}
	host, port, ok := hostPort(address.Value)
	if !ok {
		s.Say(report.Lost, address, "telemetry.metrics.address", "collectors have it no more, and it is no host:port")
		document.Remove(metrics, "address")
		return
	}
	document.Remove(metrics, "address")
	if document.Find(metrics, "readers") != nil {
		s.Say(report.Changed, address, "telemetry.metrics.address", "collectors have it no more, and there are `readers` beside it: it is left out")
		return
	}
	s.Say(report.Note, address, "telemetry.metrics.address", "collectors have it no more: it is a reader of metrics")
	if host == "" {
		host = "0.0.0.0"
	}
	number := document.StringNode(port)
	number.Tag = ""
	reader := document.NewTable().Set("pull", document.NewTable().Set("exporter", document.NewTable().Set("prometheus", document.NewTable().Set("host", host).Set("port", number))))
	metrics.Content = append(metrics.Content, document.StringNode("readers"), document.SequenceNode(reader.Node))
}

// hostPort splits an address at its last colon outside of variables.
func hostPort(address string) (host, port string, ok bool) {
	within := 0
	for i := len(address) - 1; i >= 0; i-- {
		switch address[i] {
		case '}':
			within++
		case '{':
			within--
		case ':':
			if within == 0 {
				return strings.Trim(address[:i], "[]"), address[i+1:], true
			}
		}
	}
	return "", "", false
}
