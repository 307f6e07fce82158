// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"maps"
	"net"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// convertCollector takes the configuration of another collector. It stays as it is but for what is no longer, or not here.
func convertCollector(in *input) ([]byte, error) {
	root, err := parse(in.first)
	if err != nil {
		return nil, err
	}
	if isNull(root) {
		return nil, errNothing
	}
	file := in.name()
	top := in.section(file, "", root)
	c := &collector{in: in, file: file, root: root, found: map[string]bool{}, becomes: "it is "}
	c.bareVariables(root, "", "")
	for _, kind := range componentKinds {
		c.components(kind, top.sub(kind))
	}
	c.service(top.sub("service"))
	for i := 0; i+1 < len(root.Content); {
		key := root.Content[i]
		if top.claimed[key.Value] {
			i += 2
			continue
		}
		top.claimed[key.Value] = true
		top.say(Lost, key, key.Value, "a collector has no such section: it is left out, and what YAML took from it is where it was used")
		remove(root, key.Value)
	}
	for _, kind := range componentKinds {
		in.checkSection(kind, find(root, kind), file)
	}
	for _, name := range slices.Sorted(maps.Keys(c.found)) {
		if text := missing(in.source.Distribution, discoveryKind, name); text != "" {
			in.report.add(Finding{Kind: Needs, File: file, Path: name + discoveries, Text: text})
		}
	}
	return encode(root)
}

// A collector is a configuration of one that is being converted.
type collector struct {
	in    *input
	file  string
	root  *yaml.Node
	found map[string]bool
	// becomes says of a variable of old how it is written now.
	becomes string
}

// deprecated names of types, and those that they have now, by kind.
var deprecated = map[string]string{
	"exporters otlp":                  "otlp_grpc",
	"exporters otlphttp":              "otlp_http",
	"exporters prometheusremotewrite": "prometheus_remote_write",
	"exporters loadbalancing":         "load_balancing",
	"receivers hostmetrics":           "host_metrics",
	"receivers filelog":               "file_log",
	"receivers kubeletstats":          "kubelet_stats",
	"processors resourcedetection":    "resource_detection",
	"processors k8sattributes":        "k8s_attributes",
	"processors cumulativetodelta":    "cumulative_to_delta",
	"processors deltatocumulative":    "delta_to_cumulative",
	"processors metricstarttime":      "metric_start_time",
}

// components converts the components of one kind. Their settings are theirs, but for what is known to be different.
func (c *collector) components(kind string, s *section) {
	if s == nil || s.node.Kind != yaml.MappingNode {
		return
	}
	var ids []string
	for i := 0; i+1 < len(s.node.Content); i += 2 {
		ids = append(ids, s.node.Content[i].Value)
	}
	for _, id := range ids {
		of := typeOf(id)
		settings := s.get(id)
		if now := deprecated[kind+" "+of]; now != "" {
			s.say(Note, settings, id, "the type is called `"+now+"` now, and the old name goes on working")
		}
		switch kind + " " + of {
		case "extensions memory_ballast":
			s.say(Note, settings, id, "it is left out: the extension `runtimeprofile` sets the garbage collector by the memory there is")
			remove(s.node, id)
			c.drop(id)
		case "processors memory_limiter":
			if n := remove(settings, "ballast_size_mib"); n != nil {
				s.say(Note, n, id+".ballast_size_mib", "collectors have no ballast any more, and it is left out")
			}
		case "exporters logging":
			s.say(Changed, settings, id, "the exporter is called `debug` now")
			c.logging(s, id, settings)
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
	list := find(find(c.root, "service"), "extensions")
	if list == nil {
		return
	}
	list.Content = slices.DeleteFunc(list.Content, func(n *yaml.Node) bool { return n.Value == id })
}

// logging makes an exporter `logging` one that is called `debug`.
func (c *collector) logging(s *section, was string, settings *yaml.Node) {
	_, name, _ := strings.Cut(was, "/")
	now := id(table{s.node}, "debug", name) // there may be one of that name beside it
	rename(s.node, was, now)
	s.claimed[now] = true
	if level := remove(settings, "loglevel"); level != nil {
		verbosity := map[string]string{"debug": "detailed", "info": "normal"}[strings.ToLower(level.Value)]
		if verbosity == "" {
			verbosity = "basic"
		}
		settings.Content = append(settings.Content, str("verbosity"), str(verbosity))
	}
	pipelines := find(find(c.root, "service"), "pipelines")
	if pipelines == nil {
		return
	}
	for _, pipeline := range pipelines.Content {
		for _, exporter := range contents(find(pipeline, "exporters")) {
			if exporter.Value == was {
				exporter.Value = now
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

// prometheus converts the settings of contrib's receiver, of this release or of those before it.
func (c *collector) prometheus(s *section, id string, settings *yaml.Node) {
	for _, key := range []string{"use_start_time_metric", "start_time_metric_regex"} {
		if n := remove(settings, key); n != nil && n.Value != "" && n.Value != "false" {
			s.say(Lost, n, id+"."+key, "contrib has it no more: the processor `metric_start_time` does so with `strategy: start_time_metric`, and is in the distribution godwit")
		}
	}
	for _, key := range []string{"buffer_period", "buffer_count"} {
		if n := remove(settings, key); n != nil {
			s.say(Note, n, id+"."+key, "contrib has it no more, and it had no effect")
		}
	}
	config := find(settings, "config")
	if n := remove(settings, "report_extra_scrape_metrics"); n != nil {
		s.say(Note, n, id+".report_extra_scrape_metrics", "it is Prometheus' `extra_scrape_metrics` now, under `config::global`")
		if config == nil && truth(n.Value) && settings.Kind == yaml.MappingNode { // jobs come from an allocator
			config = newTable().node
			settings.Content = append(settings.Content, str("config"), config)
		}
		if config != nil && truth(n.Value) {
			global := find(config, "global")
			if isNull(global) {
				global = newTable().node
				remove(config, "global")
				config.Content = append([]*yaml.Node{str("global"), global}, config.Content...)
			}
			if find(global, "extra_scrape_metrics") == nil {
				global.Content = append(global.Content, str("extra_scrape_metrics"), nodeOf(true))
			}
		}
	}
	if config == nil || config.Kind != yaml.MappingNode {
		return
	}
	carry := c.in.carrier(c.file)
	carry.plain, carry.found = true, c.found
	path := s.join(id) + ".config"
	made := *config
	made.Content = nil
	for i := 0; i+1 < len(config.Content); i += 2 {
		key, value := config.Content[i], config.Content[i+1]
		of := map[string]string{"global": typeGlobal, "scrape_configs": "[]" + typeJob, "scrape_config_files": "[]string"}[key.Value]
		if of == "" {
			s.say(Lost, key, id+".config."+key.Value, "the receiver only scrapes: "+noRules)
			continue
		}
		made.Content = append(made.Content, key, carry.value(value, of, path+"."+key.Value, key.Value))
	}
	*config = made
}

// remoteWrite says what keys of contrib's exporter mean here.
func (c *collector) remoteWrite(s *section, id string, settings *yaml.Node) {
	say := func(kind Outcome, key, text string) {
		if n := find(settings, key); n != nil {
			s.say(kind, n, id+"."+key, text)
		}
	}
	if n := remove(settings, "export_created_metric"); n != nil {
		s.say(Lost, n, id+".export_created_metric", "contrib has it no more: 2.0 carries start timestamps (`protobuf_message: auto`)")
	}
	say(Changed, "wal", "its `directory` holds the queue of requests; a log that contrib's exporter left there is not read")
	say(Changed, "max_batch_request_parallelism", "it is the most shards; the order of each series is kept")
	if queue := find(settings, "remote_write_queue"); queue != nil {
		if n := find(queue, "num_consumers"); n != nil {
			s.say(Changed, n, id+".remote_write_queue.num_consumers", "it is the most shards; the order of each series is kept")
		}
		if n := find(queue, "queue_size"); n != nil {
			s.say(Changed, n, id+".remote_write_queue.queue_size", "batches of the pipeline, as there, and 64 MiB of compressed requests")
		}
	}
	if auth := find(settings, "auth"); auth != nil {
		if n := find(auth, "authenticator"); n != nil && typeOf(n.Value) == "headers_setter" {
			s.say(Changed, n, id+".auth", "`from_context` finds the keys of `include_metadata_keys`, and no others; `from_attribute` finds nothing")
		}
	}
	s.say(Note, settings, id, "it sends what it sent there; `protobuf_message: auto` takes 2.0 and zstd where the destination does, for a fraction of the bytes")
}

// service converts what is no longer under `service`.
func (c *collector) service(s *section) {
	if s == nil {
		return
	}
	for i := 0; i < len(s.node.Content); i += 2 {
		s.claimed[s.node.Content[i].Value] = true
	}
	metrics := find(find(s.node, "telemetry"), "metrics")
	address := find(metrics, "address")
	if address == nil {
		return
	}
	host, port, err := net.SplitHostPort(address.Value)
	if err != nil {
		s.say(Lost, address, "telemetry.metrics.address", "collectors have it no more, and it is no host:port")
		remove(metrics, "address")
		return
	}
	remove(metrics, "address")
	if find(metrics, "readers") != nil {
		s.say(Changed, address, "telemetry.metrics.address", "collectors have it no more, and there are `readers` beside it: it is left out")
		return
	}
	s.say(Note, address, "telemetry.metrics.address", "collectors have it no more: it is a reader of metrics")
	if host == "" {
		host = "0.0.0.0"
	}
	number := str(port)
	number.Tag = ""
	reader := newTable().set("pull", newTable().set("exporter", newTable().set("prometheus", newTable().set("host", host).set("port", number))))
	metrics.Content = append(metrics.Content, str("readers"), sequence(reader.node))
}
