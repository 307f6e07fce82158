// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package vmagent converts vmagent's flags, wherever they are set, and the files that they name.
package vmagent

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/output"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// Convert converts flags and the files that they name, or a scrape configuration alone.
func Convert(in *input.Input) ([]byte, error) {
	out := output.New()
	f, err := readFlags(in)
	if err != nil {
		return nil, err
	}
	if f == nil { // a scrape configuration by itself
		f = &flags{in: in, file: in.Name(), claimed: map[string]bool{}}
		if err := scrapeFile(in, out, f, in.Text, in.Name()); err != nil {
			return nil, err
		}
	} else if path := f.text("promscrape.config"); path != "" {
		text, at, err := in.Open(path)
		if err == nil {
			err = scrapeFile(in, out, f, text, at)
		}
		if err != nil {
			f.say(report.Lost, "promscrape.config", "cannot read it: "+err.Error()+"; give it beside the flags, under any directory")
		}
	}
	if len(out.From) == 0 {
		listen(f, out)
	}
	sharding(f, out)
	limits(f, out, destinations(in, f, out))
	logs(f, out)
	f.close()
	out.Finish()
	return out.Write(in, in.Name())
}

// carrierOf returns what copies values of flags.
func carrierOf(f *flags) *promconfig.Carrier {
	carry := promconfig.NewCarrier(f.in, f.file)
	carry.Templates = true
	return carry
}

// listen makes a relay if nothing is scraped.
func listen(f *flags, out *output.Output) {
	address := ":8429"
	if given := f.list("httpListenAddr"); len(given) > 0 {
		address = given[0]
	}
	host, _, _ := strings.Cut(address, ":")
	if host == "" {
		address = "0.0.0.0" + address
	}
	address = carrierOf(f).Text(address)
	f.in.Report.Add(report.Finding{Kind: report.Changed, File: f.file, Path: "-httpListenAddr", Text: "nothing is scraped: the result takes remote write at " + address +
		"/api/v1/write; add receivers for what else was pushed, such as `otlp`"})
	out.Receive("remotewrite", document.NewTable().Set("endpoint", address))
}

// sharding converts the flags of a cluster of vmagents.
func sharding(f *flags, out *output.Output) {
	members := f.number("promscrape.cluster.membersCount", 0)
	member := f.text("promscrape.cluster.memberNum")
	copies := f.number("promscrape.cluster.replicationFactor", 0)
	label := unquote(f.text("promscrape.cluster.memberLabel"))
	number := member[strings.LastIndexByte(member, '-')+1:]
	if label != "" {
		f.say(report.Changed, "promscrape.cluster.memberLabel", "the label is added where series are sent")
	}
	if members < 2 {
		return
	}
	settings := document.NewTable().Set("members", members)
	if index, err := strconv.ParseInt(number, 10, 64); err == nil {
		settings.Set("index", index)
	} else {
		settings.Set("index", "${env:GODWIT_SHARD}")
		f.say(report.Changed, "promscrape.cluster.memberNum", "the result takes a number from GODWIT_SHARD: it does not cut one out of a name")
	}
	if copies > 0 {
		settings.Set("replication", copies)
	}
	f.say(report.Changed, "promscrape.cluster.membersCount", "targets are divided by another hash: change all members at once")
	for i := 1; i < len(out.Receivers.Node.Content); i += 2 {
		t := document.TableOf(out.Receivers.Node.Content[i])
		if t.Has("config") {
			t.Set("sharding", settings)
		}
	}
}

// destinations makes an exporter for each -remoteWrite.url that it can write to, and returns the indices of these. If
// series are divided among them, they are the endpoints of one exporter.
func destinations(in *input.Input, f *flags, out *output.Output) (made []int) {
	carry := carrierOf(f)
	rulesOf := func(flag, path string) []*yaml.Node {
		rules := relabelFile(in, f, flag, path)
		promconfig.SentLabels(in, f.file, "-"+flag, rules)
		return rules
	}
	global := rulesOf("remoteWrite.relabelConfig", f.text("remoteWrite.relabelConfig"))
	labels := labelRules(f, carry)
	urls := f.list("remoteWrite.url")
	divided := f.yes("remoteWrite.shardByURL") && len(urls) > 1
	if divided && !slices.ContainsFunc(f.list("remoteWrite.urlRelabelConfig"), func(path string) bool { return path != "" }) {
		global, labels = slices.Concat(global, labels), nil // the exporter's rules cost less than those of endpoints
	}
	reported := false // whether the place of the queues was reported
	var names []string
	var all []document.Table
	for i, url := range urls {
		if text := notByHTTP(url); text != "" {
			f.say(report.Lost, "remoteWrite.url", url+" is left out: "+text)
			continue
		}
		settings := document.NewTable().Set("endpoint", carry.Text(url))
		client := document.NewTable()
		name := ""
		if len(urls) > 1 {
			name = strconv.Itoa(i + 1)
		}
		clientOf(f, out, carry, client, i, name)
		if !client.Empty() {
			settings.Set("http", client)
		}
		rules := rulesOf("remoteWrite.urlRelabelConfig", f.of("remoteWrite.urlRelabelConfig", i))
		if !divided {
			rules = slices.Concat(global, rules)
		}
		// Labels are added last, and replace those that are there.
		if rules = slices.Concat(rules, labels); len(rules) > 0 {
			settings.Set("write_relabel_configs", document.SequenceNode(rules...))
		}
		promconfig.ExternalLabels(settings, out.External)
		formatOf(f, settings, i)
		queueOf(f, settings, i, &reported)
		names, all, made = append(names, name), append(all, settings), append(made, i)
	}
	switch {
	case len(all) == 0:
		in.Report.Add(report.Finding{Kind: report.Changed, File: f.file, Path: "-remoteWrite.url", Text: "there is none: the result writes to GODWIT_REMOTE_WRITE_URL, or to 127.0.0.1:8428"})
		settings := document.NewTable().Set("endpoint", "${env:GODWIT_REMOTE_WRITE_URL:-http://127.0.0.1:8428/api/v1/write}")
		if rules := slices.Concat(global, labels); len(rules) > 0 {
			settings.Set("write_relabel_configs", document.SequenceNode(rules...))
		}
		promconfig.ExternalLabels(settings, out.External)
		out.Export("", settings)
		made = []int{0}
	case divided:
		out.Export("", dividedAmong(f, all, global))
	default:
		for i, settings := range all {
			out.Export(names[i], settings)
		}
	}
	f.claimed["remoteWrite.shardByURL"] = true
	return made
}

// notByHTTP returns why a destination without HTTP cannot be converted, "" for all others.
func notByHTTP(url string) string {
	switch scheme, _, _ := strings.Cut(url, ":"); scheme {
	case "kafka":
		return "the exporter `kafka` of the distribution godwit writes OTLP, and not remote write: add it if what reads the topic takes that"
	case "pubsub":
		return "no distribution of Godwit writes to Google's Pub/Sub"
	}
	return ""
}

// labelRules converts -remoteWrite.label and the member's label to relabelling rules.
func labelRules(f *flags, carry *promconfig.Carrier) []*yaml.Node {
	labels := f.list("remoteWrite.label")
	if label := unquote(f.text("promscrape.cluster.memberLabel")); label != "" {
		labels = append(labels, label+"="+f.text("promscrape.cluster.memberNum"))
	}
	var rules []*yaml.Node
	for _, label := range labels {
		name, value, ok := strings.Cut(label, "=")
		if label == "" {
			continue
		}
		if !ok {
			f.say(report.Lost, "remoteWrite.label", strconv.Quote(label)+" must be name=value")
			continue
		}
		name = promconfig.Label(f.in, f.file, "-remoteWrite.label", name)
		// A dollar sign is text, not a reference to a group of the expression.
		value = carry.Text(strings.ReplaceAll(value, "$", "$$"))
		rules = append(rules, document.NewTable().Set("target_label", carry.Text(name)).Set("replacement", value).Node)
	}
	return rules
}

// formatOf converts flags of requests, retries and metadata.
func formatOf(f *flags, settings document.Table, i int) {
	switch {
	case f.on("remoteWrite.forcePromProto", i):
		settings.Set("protobuf_message", "1.0").Set("compression", "snappy")
	case f.on("remoteWrite.forceVMProto", i):
		settings.Set("protobuf_message", "1.0").Set("compression", "zstd")
	}
	f.duration("remoteWrite.sendTimeout", i, settings, "timeout")
	batch := document.NewTable()
	if n := f.number("remoteWrite.maxRowsPerBlock", 0); n > 0 {
		batch.Set("max_samples", n)
	}
	if n := f.number("remoteWrite.maxBlockSize", 0); n > 0 {
		batch.Set("max_raw_bytes", n)
	}
	f.duration("remoteWrite.flushInterval", 0, batch, "timeout")
	if !batch.Empty() {
		settings.Set("batch", batch)
	}
	if queues := f.number("remoteWrite.queues", i); queues > 0 {
		settings.Set("shards", document.NewTable().Set("max", queues))
	}
	if limit := f.number("remoteWrite.rateLimit", i); limit > 0 {
		settings.Set("rate_limit", document.NewTable().Set("bytes_per_second", limit))
	}
	retry := document.NewTable()
	f.duration("remoteWrite.retryMinInterval", i, retry, "initial_interval")
	longest := "remoteWrite.retryMaxInterval"
	if f.of(longest, i) == "" {
		longest = "remoteWrite.retryMaxTime"
	}
	f.duration(longest, i, retry, "max_interval")
	f.claimed["remoteWrite.retryMaxTime"] = true
	if !retry.Empty() {
		settings.Set("retry", retry)
	}
	enabled := f.text("enableMetadata")
	if f.on("remoteWrite.disableMetadata", i) || enabled != "" && !f.isElsewhere("enableMetadata", enabled) && !document.Truth(enabled) {
		settings.Set("send_metadata", false)
	}
}

// queueOf makes the queue, on disk as vmagent's is unless a flag disables that.
func queueOf(f *flags, settings document.Table, i int, reported *bool) {
	queue := document.NewTable()
	// With several destinations, none holds up the others, even without the flag.
	dropped := f.yes("remoteWrite.dropSamplesOnOverload") || len(f.list("remoteWrite.url")) > 1
	path := f.text("remoteWrite.tmpDataPath")
	size := f.number("remoteWrite.maxDiskUsagePerURL", i)
	if f.on("remoteWrite.disableOnDiskQueue", i) {
		queue.Set("on_full", "block")
		if dropped {
			queue = document.NewTable().Set("on_full", "drop_newest")
		}
		settings.Set("queue", queue)
		return
	}
	if !*reported && path == "" {
		f.in.Report.Add(report.Finding{Kind: report.Changed, File: f.file, Path: "-remoteWrite.tmpDataPath", Text: "the queue is in the directory godwit-remotewrite-data, where the collector is started: name another under `queue::directory`"})
	} else if !*reported {
		f.say(report.Changed, "remoteWrite.tmpDataPath", "the queue has a folder of its own in the directory: what vmagent has left there is not read, let vmagent send it first")
	}
	*reported = true
	queue.Set("directory", carrierOf(f).Text(cmp.Or(path, "godwit-remotewrite-data")))
	if size == 0 {
		size = 1 << 30
		if !f.has("remoteWrite.maxDiskUsagePerURL") {
			f.in.Report.Add(report.Finding{Kind: report.Changed, File: f.file, Path: "-remoteWrite.maxDiskUsagePerURL", Text: "without one the queue grows until the disk is full: it is bounded to 1 GiB for each destination, some 250 million samples, under `queue::size`"})
		} else {
			f.say(report.Changed, "remoteWrite.maxDiskUsagePerURL", "a queue has a bound: 1 GiB, under `queue::size`")
		}
	}
	queue.Set("size", size).Set("on_full", "drop_oldest")
	settings.Set("queue", queue)
}

// limits converts limits on series of all destinations, and stream aggregation: both become the processor's.
func limits(f *flags, out *output.Output, urls []int) {
	hourly, daily := f.number("remoteWrite.maxHourlySeries", 0), f.number("remoteWrite.maxDailySeries", 0)
	name, limit, idle := "remoteWrite.maxHourlySeries", hourly, time.Hour
	if hourly <= 0 {
		name, limit, idle = "remoteWrite.maxDailySeries", daily, 24*time.Hour
	} else if daily > 0 {
		f.say(report.Lost, "remoteWrite.maxDailySeries", "there is one limit on all series: that of an hour is kept")
	}
	if limit <= 0 {
		idle = 10 * time.Minute // the processor's default
	} else {
		f.say(report.Changed, name, "the processor `cardinality` keeps series that were there first, until they were silent for "+promconfig.GoDuration(idle)+"; vmagent forgets all of them each time")
	}
	settings := func(a *aggregation) document.Table {
		made := document.NewTable()
		if limit > 0 || a.longest > idle {
			made.Set("idle_timeout", promconfig.GoDuration(max(idle, a.longest)))
		}
		if limit > 0 {
			made.Set("memory", document.NewTable().Set("max_series", limit)).Set("defaults", document.NewTable().Set("on_exceed", []string{"drop"}))
		}
		if len(a.rules) > 0 {
			made.Set("rules", document.SequenceNode(a.rules...))
		}
		return made
	}
	shared, own := aggregations(f, urls, len(out.To) == len(urls))
	if own == nil {
		out.Process("cardinality", settings(shared))
	}
	for i, a := range own {
		out.Branch(i, "cardinality", settings(a))
	}
}

func logs(f *flags, out *output.Output) {
	made := document.NewTable()
	level, format := strings.ToLower(f.text("loggerLevel")), f.text("loggerFormat")
	f.isElsewhere("loggerLevel", level)
	f.isElsewhere("loggerFormat", format)
	if level == "warn" || level == "error" {
		made.Set("level", level)
	}
	if format == "json" {
		made.Set("encoding", "json")
	}
	if !made.Empty() {
		out.Telemetry.Set("logs", made)
	}
}
