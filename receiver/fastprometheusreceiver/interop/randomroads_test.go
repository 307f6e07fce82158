// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/attributesprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/cumulativetodeltaprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/deltatocumulativeprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/groupbyattrsprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/metricstarttimeprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/resourceprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"go.opentelemetry.io/collector/processor"
)

// contribs returns the processors of other authors for random pipelines.
func contribs() []processor.Factory {
	return []processor.Factory{
		attributesprocessor.NewFactory(), resourceprocessor.NewFactory(), transformprocessor.NewFactory(), filterprocessor.NewFactory(),
		groupbyattrsprocessor.NewFactory(), cumulativetodeltaprocessor.NewFactory(), deltatocumulativeprocessor.NewFactory(),
		metricstarttimeprocessor.NewFactory(),
	}
}

// What a processor is according to the contract.
const (
	counts    = iota // counts points, and releases metrics
	opens            // releases metrics
	points           // changes attributes of points
	resources        // changes those of resources
	removes          // removes metrics and points
	silence          // says nothing
	retains          // says that it keeps metrics
)

// A piece is a processor with its configuration.
type piece struct {
	id, config string
	is         int
	rare       bool // most pipelines have none: it prevents reuse, or removes metrics
	alone      bool // of its kind: two of them would disagree, or take everything
}

func (p piece) kind() string { return strings.Split(p.id, "/")[0] }

// randomPieces are all of them. None merges several series into one if the result depends on their order. Limits are
// per target, for series that are on each page.
var randomPieces = []piece{
	{id: "memory_limiter", config: "{check_interval: 1s, limit_mib: 8000}", is: counts},
	{id: "memory_limiter/2", config: "{check_interval: 1s, limit_mib: 8000}", is: counts},
	{id: "blocking", config: "{}", is: opens},
	{id: "refusing", config: "{}", is: opens, rare: true, alone: true},
	{id: "rejecting", config: "{}", is: opens, rare: true, alone: true},
	{id: "seeing", config: "{}", is: opens, alone: true},
	{id: "lyingreorder", config: "{}", is: opens, rare: true, alone: true},
	{id: "lyingthin", config: "{}", is: opens, rare: true, alone: true},
	{id: "lyingenrich", config: "{}", is: opens, rare: true, alone: true},
	{id: "lyingmove", config: "{}", is: opens, rare: true, alone: true},
	{id: "cardinality", config: "{}", is: opens},
	{id: "cardinality/dry", config: `{mode: dry_run, rules: [{name: few, match: {metric: "*"}, max_series: 5}]}`, is: opens},
	{id: "cardinality/labels", config: `{rules: [{name: labels, match: {metric: "*"}, max_series: 1000000, label_limits: {user: 0}}]}`, is: opens},
	{id: "cardinality/drop", config: `{rules: [{name: few, match: {metric: "kept_*", attributes: {target: a}}, max_series: 6, on_exceed: [drop]}]}`, is: opens},
	{id: "cardinality/overflow", config: `{overflow: {interval: 1s}, rules: [{name: few, match: {metric: "kept_*", attributes: {target: a}}, max_series: 6, on_exceed: [overflow]}]}`, is: opens},
	{id: "cardinality/collapse", config: `{overflow: {interval: 1s}, rules: [{name: few, match: {metric: "kept_*", attributes: {target: a}}, max_series: 6, label_limits: {path: 3}, on_exceed: [collapse, drop]}]}`, is: opens},
	{id: "cardinality/sample", config: `{rules: [{name: few, match: {metric: "kept_*", attributes: {target: a}}, max_series: 6, on_exceed: [sample, drop], sample_rate: 0.5}]}`, is: opens},
	{id: "cardinality/aggregate", config: `{rules: [{name: sums, match: {metric: kept_1*}, aggregate: {without: [path, user, code, pod, node, target], interval: 1s, keep_input: true}}]}`, is: opens, rare: true},
	{id: "attributes/insert", config: `{actions: [{key: region, value: north, action: insert}]}`, is: points},
	{id: "attributes/edit", config: `{actions: [{key: code, value: changed, action: update}, {key: region, value: far, action: upsert}, {key: user, action: delete}]}`, is: points},
	{id: "attributes/hash", config: `{actions: [{key: path, action: hash}, {key: code, action: convert, converted_type: int}]}`, is: points},
	{id: "attributes/extract", config: `{actions: [{key: path, pattern: "^/(?P<part>[a-z]+)(?P<number>[0-9]+)$", action: extract}]}`, is: points},
	{id: "attributes/rename", config: `{actions: [{key: route, from_attribute: path, action: insert}, {key: path, action: delete}]}`, is: points},
	{id: "attributes/some", config: `{include: {match_type: regexp, metric_names: ["random_.*", "up"]}, actions: [{key: pod, action: hash}, {key: some, value: one, action: upsert}]}`, is: points},
	{id: "attributes/resource", config: `{include: {match_type: regexp, resources: [{key: service.instance.id, value: ".*"}]}, actions: [{key: code, from_attribute: user, action: upsert}]}`, is: points},
	{id: "resource/insert", config: `{attributes: [{key: cluster, value: north, action: insert}]}`, is: resources},
	{id: "resource/edit", config: `{attributes: [{key: service.name, value: renamed, action: upsert}, {key: service.instance.id, action: hash}, {key: server.port, action: delete}]}`, is: resources},
	{id: "resource/rename", config: `{attributes: [{key: host, from_attribute: server.address, action: insert}, {key: server.address, action: delete}]}`, is: resources},
	{id: "batch", config: `{timeout: 5ms, send_batch_size: 50}`, is: silence, rare: true},
	{id: "batch/small", config: `{timeout: 5ms, send_batch_size: 7, send_batch_max_size: 11}`, is: silence, rare: true},
	{id: "transform", config: `{metric_statements: [{context: datapoint, statements: ['set(attributes["path"], Concat([attributes["path"], "x"], "")) where attributes["path"] != nil', 'delete_key(attributes, "user")']}]}`, is: silence, rare: true},
	{id: "transform/metric", config: `{metric_statements: [{context: metric, statements: ['set(description, "said") where type == METRIC_DATA_TYPE_GAUGE']}]}`, is: silence, rare: true},
	{id: "filter", config: `{metrics: {metric: ['name == "random_7"'], datapoint: ['attributes["path"] == "/path3"']}}`, is: removes},
	{id: "filter/names", config: `{metrics: {exclude: {match_type: regexp, metric_names: ["random_[123].*", "scrape_samples.*"]}}}`, is: removes},
	{id: "filter/values", config: `{error_mode: ignore, metric_conditions: ['IsMatch(metric.name, "random_.*") and IsMatch(String(datapoint.value_double), "[0369]$")']}`, is: removes, rare: true},
	{id: "filter/target", config: `{metric_conditions: ['resource.attributes["service.instance.id"] == "target-b:1"']}`, is: removes, rare: true},
	{id: "groupbyattrs", config: `{keys: [code]}`, is: silence, rare: true},
	{id: "groupbyattrs/compact", config: `{}`, is: silence, rare: true},
	{id: "cumulativetodelta", config: `{include: {match_type: regexp, metrics: [".*"]}}`, is: silence, rare: true, alone: true},
	{id: "deltatocumulative", config: `{}`, is: silence, rare: true, alone: true},
	{id: "metricstarttime", config: `{}`, is: silence, rare: true, alone: true},
	{id: "passing", config: "{}", is: silence, rare: true},
	{id: "hoarding", config: "{}", is: silence, rare: true},
	{id: "keeping", config: "{}", is: retains, rare: true},
	{id: "reordering", config: "{}", is: silence, rare: true},
	{id: "enriching", config: "{}", is: silence, rare: true},
	{id: "thinning", config: "{}", is: silence, rare: true},
}

// somePiecesOf draws processors. In half of the pipelines, all of them release metrics.
func somePiecesOf(r *rand.Rand, fit func(piece) bool) (all []piece) {
	free, most := r.IntN(3) > 0, r.IntN(6)
	kinds := map[string]bool{}
	for _, i := range r.Perm(len(randomPieces)) {
		p := randomPieces[i]
		if len(all) == most {
			break
		}
		if free && (p.is == silence || p.is == retains) || p.rare && r.IntN(3) > 0 || p.alone && kinds[p.kind()] || !fit(p) {
			continue
		}
		kinds[p.kind()] = true
		all = append(all, p)
	}
	if has(way{pieces: all}, "cardinality/labels") { // which recognizes what it collapses by the label
		all = slices.DeleteFunc(all, func(p piece) bool { return p.id == "attributes/edit" || p.id == "transform" })
	}
	return all
}

// What comes after the processors.
const (
	toOne = iota
	toTwoExporters
	toTwoPipelines
	toConnector
)

// A way is the part of a pipeline behind the receiver, and what is expected of it.
type way struct {
	pieces    []piece
	shape     int
	exporters []string // one or two
	slow      string   // why its twin is slow
	shared    bool     // by two receivers
}

// randomExporters are exporters, each with placeholders for its destination and its name.
var randomExporters = map[string]string{
	"rw1":     `remotewrite/%[1]s: {endpoint: '%[2]s/%[1]s', protobuf_message: "1.0", batch: {timeout: 5ms}}`,
	"rw2":     `remotewrite/%[1]s: {endpoint: '%[2]s/%[1]s', protobuf_message: io.prometheus.write.v2.Request, batch: {timeout: 5ms}}`,
	"small":   `remotewrite/%[1]s: {endpoint: '%[2]s/%[1]s', protobuf_message: io.prometheus.write.v2.Request, batch: {timeout: 5ms, max_samples: 13}, cache: {max_series: 40}, compression: zstd}`,
	"labels":  `remotewrite/%[1]s: {endpoint: '%[2]s/%[1]s', protobuf_message: io.prometheus.write.v2.Request, batch: {timeout: 5ms}, external_labels: {cluster: north}, convert_explicit_histograms_to_nhcb: true, delta: {to_cumulative: true}}`,
	"tenants": `remotewrite/%[1]s: {endpoint: '%[2]s/%[1]s', protobuf_message: io.prometheus.write.v2.Request, batch: {timeout: 5ms}, tenant: {header: X-Scope-OrgID, from_resource_attribute: service.instance.id, default: nobody}}`,
	"relabel": `remotewrite/%[1]s: {endpoint: '%[2]s/%[1]s', protobuf_message: io.prometheus.write.v2.Request, batch: {timeout: 5ms}, write_relabel_configs: [{source_labels: [instance], target_label: host}, {regex: code, action: labeldrop}]}`,
	"several": `remotewrite/%[1]s: {batch: {timeout: 5ms}, endpoints: [{endpoint: '%[2]s/%[1]s', protobuf_message: io.prometheus.write.v2.Request}, {endpoint: '%[2]s/%[1]s-second', protobuf_message: "1.0", write_relabel_configs: [{regex: code, action: labeldrop}]}]}`,
	"disk":    `remotewrite/%[1]s: {endpoint: '%[2]s/%[1]s', protobuf_message: io.prometheus.write.v2.Request, batch: {timeout: 5ms}, queue: {directory: '%[4]s/%[1]s'}}`,
	"dropin":  `prometheus_remote_write/%[1]s: {endpoint: '%[2]s/%[1]s', tls: {insecure: true}}`,
	"stream":  `otlpstream/%[1]s: {endpoint: '%[3]s', tls: {insecure: true}}`,
	"zstd":    `otlpstream/%[1]s: {endpoint: '%[3]s', tls: {insecure: true}, compression: zstd, sending_queue: {batch: {flush_timeout: 5ms, sizer: items, min_size: 100}}}`,
	"unary":   `otlpstream/%[1]s: {endpoint: '%[3]s', tls: {insecure: true}, mode: unary}`,
}

func pieceOf(id string) piece {
	return randomPieces[slices.IndexFunc(randomPieces, func(p piece) bool { return p.id == id })]
}

// comesBackFrom returns the index of the batch from which metrics come back, or -1: there are only processors that
// change attributes between it and one exporter of ours, and none that borrows metrics before it.
func (w way) comesBackFrom() int {
	last := len(w.pieces) - 1
	for last >= 0 && (w.pieces[last].is == points || w.pieces[last].is == resources) {
		last--
	}
	if last < 0 || w.pieces[last].kind() != "batch" || w.shape != toOne ||
		slices.ContainsFunc(w.pieces, func(p piece) bool { return p.is == opens || p.is == retains }) {
		return -1
	}
	return last
}

func isStream(exporter string) bool {
	return strings.HasPrefix(randomExporters[exporter], "otlpstream")
}

func drawWay(r *rand.Rand, fit func(piece) bool) (w way) {
	w.pieces = somePiecesOf(r, fit)
	if r.IntN(4) == 0 { // a batch in front of the exporter, as is common
		w.pieces = slices.DeleteFunc(w.pieces, func(p piece) bool { return p.is == opens || p.is == silence || p.is == retains })
		w.pieces = append(w.pieces, pieceOf([]string{"batch", "batch/small"}[r.IntN(2)]))
		if at := r.IntN(2 * len(w.pieces)); at < len(w.pieces) { // or before others
			slices.Reverse(w.pieces[at:])
		}
	}
	names := make([]string, 0, len(randomExporters))
	for name := range randomExporters {
		names = append(names, name)
	}
	slices.Sort(names)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	w.exporters = names[:1]
	if r.IntN(6) == 0 {
		if w.shape = 1 + r.IntN(3); w.shape != toConnector {
			w.exporters = names[:2]
		}
	}
	w.shared = r.IntN(5) == 0
	w.slow = []string{"passing", "never"}[r.IntN(2)]
	return w
}

// expectation is what a receiver is expected to log.
type expectation struct {
	used       bool
	what, why  string
	restored   string // what is restored first
	unread     bool   // nobody reads it without asking
	later      bool   // it comes back from a batch
	mayBeAgain bool   // memory is reused unless a processor lies
}

// expect returns what a receiver is expected to say about a way, depending on whether it restores what is changed.
func (w way) expect(pipeline, connector string, putsBack bool) (e expectation) {
	if w.shape == toTwoPipelines {
		return expectation{what: "the receiver", why: "is in 2 pipelines, which share metrics"}
	}
	changes := map[int]bool{}
	e.mayBeAgain = true
	e.unread = !isStream(w.exporters[0]) && w.shape == toOne
	for i, p := range w.pieces {
		name := fmt.Sprintf("processor %q", p.id)
		e.unread = e.unread && (p.is == counts || putsBack && p.kind() == "cardinality") // which asks for attributes that are unwritten
		if strings.HasPrefix(p.id, "lying") {
			e.mayBeAgain = false
		}
		switch {
		case putsBack && i == w.comesBackFrom():
			e.later = true
		case p.is == silence:
			return expectation{what: name, why: "does not say whether it keeps metrics"}
		case p.is == retains:
			return expectation{what: name, why: errKeeps.Error()}
		case p.is == removes && !putsBack:
			return expectation{what: name, why: "removes metrics"}
		case p.is == removes && slices.ContainsFunc(w.pieces, func(p piece) bool { return p.kind() == "cardinality" }):
			return expectation{what: name, why: "removes metrics, beside a processor that borrows them"}
		case p.is == points && !putsBack:
			return expectation{what: name, why: "changes attributes of points"}
		case p.is == resources && !putsBack:
			return expectation{what: name, why: "changes attributes of resources"}
		}
		changes[p.is] = true
	}
	switch w.shape {
	case toTwoExporters:
		return expectation{what: fmt.Sprintf("pipeline %q", pipeline), why: "has 2 exporters, which share metrics"}
	case toConnector:
		return expectation{what: fmt.Sprintf("connector %q", connector), why: "may hand metrics to any pipeline, or keep them"}
	}
	e.used = true
	switch {
	case changes[points] && changes[resources]:
		e.restored = "attributes of points and resources"
	case changes[points]:
		e.restored = "attributes of points"
	case changes[resources]:
		e.restored = "attributes of resources"
	}
	switch {
	case changes[removes] && e.restored != "":
		e.restored += ", removed metrics"
	case changes[removes]:
		e.restored = "removed metrics"
	case e.restored == "":
		e.restored = "nothing"
	}
	return e
}

func (w way) String() string {
	var ids []string
	for _, p := range w.pieces {
		ids = append(ids, p.id)
	}
	return fmt.Sprintf("%v, shape %d, %v, slow by %s, shared %v", ids, w.shape, w.exporters, w.slow, w.shared)
}
