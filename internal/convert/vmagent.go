// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

func convertVMAgent(in *input) ([]byte, error) {
	out := newOutput()
	f, err := readFlags(in)
	if err != nil {
		return nil, err
	}
	if f == nil { // a scrape configuration by itself
		f = &flags{in: in, file: in.name(), claimed: map[string]bool{}}
		if err := scrapeFile(in, out, f, in.first, in.name()); err != nil {
			return nil, err
		}
	} else if path := f.text("promscrape.config"); path != "" {
		text, at, err := in.open(path)
		if err == nil {
			err = scrapeFile(in, out, f, text, at)
		}
		if err != nil {
			f.say(Lost, "promscrape.config", "cannot read it: "+err.Error()+"; give it beside the flags, under any directory")
		}
	}
	if len(out.from) == 0 {
		listen(f, out)
	}
	sharding(f, out)
	limits(f, out, vmagentDestinations(in, f, out))
	logs(f, out)
	f.close()
	finish(out)
	return out.write(in, in.name())
}

// listen makes a relay of what scrapes nothing.
func listen(f *flags, out *output) {
	address := ":8429"
	if given := f.list("httpListenAddr"); len(given) > 0 {
		address = given[0]
	}
	host, _, _ := strings.Cut(address, ":")
	if host == "" {
		address = "0.0.0.0" + address
	}
	f.in.report.add(Finding{Kind: Changed, File: f.file, Path: "-httpListenAddr", Text: "nothing is scraped: the result takes remote write at " + address +
		"/api/v1/write; add receivers for what else was pushed, such as `otlp`"})
	out.receive("remotewrite", newTable().set("endpoint", address))
}

// sharding converts the flags of a cluster of vmagents.
func sharding(f *flags, out *output) {
	members := f.number("promscrape.cluster.membersCount", 0)
	member := f.text("promscrape.cluster.memberNum")
	copies := f.number("promscrape.cluster.replicationFactor", 0)
	label := f.text("promscrape.cluster.memberLabel")
	number := member[strings.LastIndexByte(member, '-')+1:]
	if label != "" {
		f.say(Changed, "promscrape.cluster.memberLabel", "the label is added where series are sent")
	}
	if members < 2 {
		return
	}
	settings := newTable().set("members", members)
	if index, err := strconv.ParseInt(number, 10, 64); err == nil {
		settings.set("index", index)
	} else {
		settings.set("index", "${env:GODWIT_SHARD}")
		f.say(Changed, "promscrape.cluster.memberNum", "the result takes a number from GODWIT_SHARD: it does not cut one out of a name")
	}
	if copies > 0 {
		settings.set("replication", copies)
	}
	f.say(Changed, "promscrape.cluster.membersCount", "targets are divided by another hash: change all members at once")
	for i := 1; i < len(out.receivers.node.Content); i += 2 {
		t := table{out.receivers.node.Content[i]}
		if t.has("config") {
			t.set("sharding", settings)
		}
	}
}

// vmagentDestinations makes an exporter for each -remoteWrite.url that can be had, and tells which of them these are. Where series are divided
// among them, they are the endpoints of one.
func vmagentDestinations(in *input, f *flags, out *output) (made []int) {
	carry := in.carrier(f.file)
	carry.templates = true
	global := relabelFile(in, f, "remoteWrite.relabelConfig", f.text("remoteWrite.relabelConfig"))
	labels := labelRules(f, carry)
	urls := f.list("remoteWrite.url")
	divided := f.yes("remoteWrite.shardByURL") && len(urls) > 1
	if divided && !slices.ContainsFunc(f.list("remoteWrite.urlRelabelConfig"), func(path string) bool { return path != "" }) {
		global, labels = slices.Concat(global, labels), nil // the exporter's rules cost less than those of endpoints
	}
	reported := false // where the queues are
	var names []string
	var all []table
	for i, url := range urls {
		if text := notByHTTP(url); text != "" {
			f.say(Lost, "remoteWrite.url", url+" is left out: "+text)
			continue
		}
		settings := newTable().set("endpoint", carry.text(url))
		client := newTable()
		name := ""
		if len(urls) > 1 {
			name = strconv.Itoa(i + 1)
		}
		vmagentClient(f, out, carry, client, i, name)
		if !client.empty() {
			settings.set("http", client)
		}
		rules := relabelFile(in, f, "remoteWrite.urlRelabelConfig", f.of("remoteWrite.urlRelabelConfig", i))
		if !divided {
			rules = slices.Concat(global, rules)
		}
		// Labels are added last, and replace those that are there.
		if rules = slices.Concat(rules, labels); len(rules) > 0 {
			settings.set("write_relabel_configs", sequence(rules...))
		}
		externalLabels(settings, out.external)
		vmagentFormat(f, settings, i)
		vmagentQueue(f, settings, i, &reported)
		names, all, made = append(names, name), append(all, settings), append(made, i)
	}
	switch {
	case len(all) == 0:
		in.report.add(Finding{Kind: Changed, File: f.file, Path: "-remoteWrite.url", Text: "there is none: the result writes to GODWIT_REMOTE_WRITE_URL, or to 127.0.0.1:8428"})
		settings := newTable().set("endpoint", "${env:GODWIT_REMOTE_WRITE_URL:-http://127.0.0.1:8428/api/v1/write}")
		if rules := slices.Concat(global, labels); len(rules) > 0 {
			settings.set("write_relabel_configs", sequence(rules...))
		}
		externalLabels(settings, out.external)
		out.export("", settings)
		made = []int{0}
	case divided:
		out.export("", dividedAmong(f, all, global))
	default:
		for i, settings := range all {
			out.export(names[i], settings)
		}
	}
	f.claimed["remoteWrite.shardByURL"] = true
	return made
}

// notByHTTP says of a destination why it is none here.
func notByHTTP(url string) string {
	switch scheme, _, _ := strings.Cut(url, ":"); scheme {
	case "kafka":
		return "the exporter `kafka` of the distribution godwit writes OTLP, and not remote write: add it if what reads the topic takes that"
	case "pubsub":
		return "no distribution of Godwit writes to Google's Pub/Sub"
	}
	return ""
}

// labelRules are -remoteWrite.label and the label of a member, as rules.
func labelRules(f *flags, carry *carrier) []*yaml.Node {
	labels := f.list("remoteWrite.label")
	if label := f.text("promscrape.cluster.memberLabel"); label != "" {
		labels = append(labels, label+"="+f.text("promscrape.cluster.memberNum"))
	}
	var rules []*yaml.Node
	for _, label := range labels {
		name, value, ok := strings.Cut(label, "=")
		if !ok {
			f.say(Lost, "remoteWrite.label", strconv.Quote(label)+" must be name=value")
			continue
		}
		// A dollar of its own is one, and no group of the rule's expression.
		value = carry.text(strings.ReplaceAll(value, "$", "$$"))
		rules = append(rules, newTable().set("target_label", name).set("replacement", value).node)
	}
	return rules
}

// vmagentFormat converts what is about requests.
func vmagentFormat(f *flags, settings table, i int) {
	switch {
	case truth(f.of("remoteWrite.forcePromProto", i)):
		settings.set("protobuf_message", "1.0").set("compression", "snappy")
	case truth(f.of("remoteWrite.forceVMProto", i)):
		settings.set("protobuf_message", "1.0").set("compression", "zstd")
	}
	f.duration("remoteWrite.sendTimeout", i, settings, "timeout")
	batch := newTable()
	if n := f.number("remoteWrite.maxRowsPerBlock", 0); n > 0 {
		batch.set("max_samples", n)
	}
	if n := f.number("remoteWrite.maxBlockSize", 0); n > 0 {
		batch.set("max_raw_bytes", n)
	}
	f.duration("remoteWrite.flushInterval", 0, batch, "timeout")
	if !batch.empty() {
		settings.set("batch", batch)
	}
	if queues := f.number("remoteWrite.queues", i); queues > 0 {
		settings.set("shards", newTable().set("max", queues))
	}
	if limit := f.number("remoteWrite.rateLimit", i); limit > 0 {
		settings.set("rate_limit", newTable().set("bytes_per_second", limit))
	}
	retry := newTable()
	f.duration("remoteWrite.retryMinInterval", i, retry, "initial_interval")
	longest := "remoteWrite.retryMaxInterval"
	if f.of(longest, i) == "" {
		longest = "remoteWrite.retryMaxTime"
	}
	f.duration(longest, i, retry, "max_interval")
	f.claimed["remoteWrite.retryMaxTime"] = true
	if !retry.empty() {
		settings.set("retry", retry)
	}
	if truth(f.of("remoteWrite.disableMetadata", i)) || f.has("enableMetadata") && !f.yes("enableMetadata") {
		settings.set("send_metadata", false)
	}
	f.claimed["enableMetadata"] = true
}

// vmagentQueue makes the queue, which is on disk as vmagent's is.
func vmagentQueue(f *flags, settings table, i int, reported *bool) {
	queue := newTable()
	// Of several destinations none holds up the others, without the flag, too.
	dropped := f.yes("remoteWrite.dropSamplesOnOverload") || len(f.list("remoteWrite.url")) > 1
	path := f.text("remoteWrite.tmpDataPath")
	size := f.number("remoteWrite.maxDiskUsagePerURL", i)
	if truth(f.of("remoteWrite.disableOnDiskQueue", i)) {
		queue.set("on_full", "block")
		if dropped {
			queue = newTable().set("on_full", "drop_newest")
		}
		settings.set("queue", queue)
		return
	}
	if !*reported && path == "" {
		f.in.report.add(Finding{Kind: Changed, File: f.file, Path: "-remoteWrite.tmpDataPath", Text: "the queue is in the directory godwit-remotewrite-data, where the collector is started: name another under `queue::directory`"})
	} else if !*reported {
		f.say(Changed, "remoteWrite.tmpDataPath", "the queue has a folder of its own in the directory: what vmagent has left there is not read, let vmagent send it first")
	}
	*reported = true
	queue.set("directory", f.in.carrier(f.file).text(cmp.Or(path, "godwit-remotewrite-data")))
	if size == 0 {
		size = 1 << 30
		if !f.has("remoteWrite.maxDiskUsagePerURL") {
			f.in.report.add(Finding{Kind: Changed, File: f.file, Path: "-remoteWrite.maxDiskUsagePerURL", Text: "without one the queue grows until the disk is full: it is bounded to 1 GiB for each destination, some 250 million samples, under `queue::size`"})
		} else {
			f.say(Changed, "remoteWrite.maxDiskUsagePerURL", "a queue has a bound: 1 GiB, under `queue::size`")
		}
	}
	queue.set("size", size).set("on_full", "drop_oldest")
	settings.set("queue", queue)
}

// limits converts limits on series of all destinations, and stream aggregation: both are the processor's.
func limits(f *flags, out *output, urls []int) {
	hourly, daily := f.number("remoteWrite.maxHourlySeries", 0), f.number("remoteWrite.maxDailySeries", 0)
	name, limit, idle := "remoteWrite.maxHourlySeries", hourly, time.Hour
	if hourly <= 0 {
		name, limit, idle = "remoteWrite.maxDailySeries", daily, 24*time.Hour
	} else if daily > 0 {
		f.say(Lost, "remoteWrite.maxDailySeries", "there is one limit on all series: that of an hour is kept")
	}
	if limit <= 0 {
		idle = 10 * time.Minute // the processor's default
	} else {
		f.say(Changed, name, "the processor `cardinality` keeps series that were there first, until they were silent for "+goDuration(idle)+"; vmagent forgets all of them each time")
	}
	settings := func(a *aggregation) table {
		made := newTable()
		if limit > 0 || a.longest > idle {
			made.set("idle_timeout", goDuration(max(idle, a.longest)))
		}
		if limit > 0 {
			made.set("memory", newTable().set("max_series", limit)).set("defaults", newTable().set("on_exceed", []string{"drop"}))
		}
		if len(a.rules) > 0 {
			made.set("rules", sequence(a.rules...))
		}
		return made
	}
	shared, own := aggregations(f, urls, len(out.to) == len(urls))
	if own == nil {
		out.process("cardinality", settings(shared))
	}
	for i, a := range own {
		out.branch(i, "cardinality", settings(a))
	}
}

func logs(f *flags, out *output) {
	made := newTable()
	if level := strings.ToLower(f.text("loggerLevel")); level == "warn" || level == "error" {
		made.set("level", level)
	}
	if f.text("loggerFormat") == "json" {
		made.set("encoding", "json")
	}
	if !made.empty() {
		out.telemetry.set("logs", made)
	}
}
