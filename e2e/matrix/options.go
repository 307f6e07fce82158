// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import "slices"

// Option is a key with values that differ from its default.
type Option struct {
	// Key is a path as in Keys, or one below it of another module's type. The part before the first * is set.
	Key    string
	Values []Value
}

// Value is the value of a key. $DIR, $PORT and other variables are replaced: see Texts.
type Value struct {
	// Text is YAML.
	Text string
	// With is YAML merged into the configuration of the same process, Peer into that of the other process.
	With, Peer string
	// Loses is set if data may be limited, filtered or dropped.
	Loses bool
}

// values returns plain values.
func values(texts ...string) []Value {
	var all []Value
	for _, text := range texts {
		all = append(all, Value{Text: text})
	}
	return all
}

// ruled returns a relabelling rule for the exporter's only endpoint.
func ruled(rule string) []Value {
	return []Value{{
		Text: "[{endpoint: $DESTINATION, write_relabel_configs: [" + rule + "]}]", With: "exporters: {remotewrite: {endpoint: ''}}",
	}}
}

// losing returns values with which data may be lost.
func losing(texts ...string) []Value {
	all := values(texts...)
	for i := range all {
		all[i].Loses = true
	}
	return all
}

// tenanted returns a table of tenants, with a rule for each tenant.
func tenanted(text string) []Value {
	return []Value{{
		Text: text, Loses: true,
		With: "processors: {cardinality: {tenant: {from: ['resource:service.name']}, rules: [{name: one, group_by: [tenant], label_limits: {le: 5}}]}}",
	}}
}

// Component is a component whose options are tested.
type Component struct {
	// Role is its process; Section and ID are its place in the configuration.
	Role, Section, ID string
	// Folder is the directory of its configuration's source.
	Folder  string
	Options []Option
	// Apart holds keys that no run sets, with the reason.
	Apart map[string]string
}

// The processes of a road.
const (
	Agent   = "agent"
	Gateway = "gateway"
)

// Components are all of our components, for each process that has them.
var Components = []Component{
	{Agent, "receivers", "fastprometheus", "receiver/fastprometheusreceiver", scraping, nil},
	{Agent, "receivers", "prometheus", "receiver/fastprometheusreceiver", scraping, nil},
	{Agent, "processors", "cardinality", "processor/cardinalityprocessor", limiting, nil},
	{Agent, "exporters", "remotewrite", "exporter/remotewriteexporter", slices.Concat(writing, relabelling, writingToTheGateway), wroteApart},
	{Agent, "exporters", "prometheusremotewrite", "exporter/prometheusremotewriteexporter", slices.Concat(dropIn, relabelling), nil},
	{Agent, "exporters", "otlpstream", "exporter/otlpstreamexporter", streaming, nil},
	{Agent, "extensions", "console", "extension/consoleextension", console, nil},
	{Agent, "extensions", "pulse", "extension/pulseextension", pulse, nil},
	{Agent, "extensions", "runtimeprofile", "extension/runtimeprofileextension", profile, nil},
	{Gateway, "receivers", "remotewrite", "receiver/remotewritereceiver", written, nil},
	{Gateway, "receivers", "otlpstream", "receiver/otlpstreamreceiver", streamed, nil},
	{Gateway, "processors", "cardinality", "processor/cardinalityprocessor", limiting, nil},
	{Gateway, "exporters", "remotewrite", "exporter/remotewriteexporter", slices.Concat(writing, relabelling), wroteApart},
	{Gateway, "extensions", "runtimeprofile", "extension/runtimeprofileextension", profile, nil},
}

const stored = "extensions: {file_storage: {directory: $DIR/store, create_directory: true}}\nservice: {extensions+: [file_storage]}\n"

var scraping = []Option{
	{"config::global", values(
		"{scrape_interval: 500ms, scrape_timeout: 400ms, external_labels: {cluster: north}}",
		"{scrape_interval: 500ms, scrape_timeout: 500ms, scrape_protocols: [PrometheusProto, OpenMetricsText1.0.0, PrometheusText0.0.4]}",
		"{scrape_interval: 500ms, scrape_timeout: 500ms, scrape_native_histograms: true, body_size_limit: 1MB, sample_limit: 1000, label_limit: 100}",
		"{scrape_interval: 500ms, scrape_timeout: 500ms, always_scrape_classic_histograms: true, convert_classic_histograms_to_nhcb: true}",
	)},
	{"trim_metric_suffixes", values("true")},
	{"target_allocator::endpoint", []Value{{Text: "$ALLOCATOR", With: "receivers: {$ID: {target_allocator: {collector_id: me, interval: 1s}}}"}}},
	{"target_allocator::interval", []Value{{Text: "1s", With: "receivers: {$ID: {target_allocator: {endpoint: $ALLOCATOR, collector_id: me}}}"}}},
	{"target_allocator::collector_id", []Value{{Text: "other", With: "receivers: {$ID: {target_allocator: {endpoint: $ALLOCATOR, interval: 1s}}}"}}},
	{"target_allocator::allowed_files", []Value{{Text: "[/var/run/secrets/*]", With: "receivers: {$ID: {target_allocator: {endpoint: $ALLOCATOR, collector_id: me, interval: 1s}}}"}}},
	{"target_allocator::http_sd_config", []Value{{Text: "{refresh_interval: 1s}", With: "receivers: {$ID: {target_allocator: {endpoint: $ALLOCATOR, collector_id: me, interval: 1s}}}"}}},
	{"target_allocator::http_scrape_config", []Value{{Text: "{follow_redirects: false}", With: "receivers: {$ID: {target_allocator: {endpoint: $ALLOCATOR, collector_id: me, interval: 1s}}}"}}},
	{"api_server::enabled", []Value{{Text: "true", With: "receivers: {$ID: {api_server: {server_config: {endpoint: 127.0.0.1:$PORT}}}}"}}},
	{"api_server::max_connections", []Value{{Text: "1", With: "receivers: {$ID: {api_server: {enabled: true, server_config: {endpoint: 127.0.0.1:$PORT}}}}"}}},
	{"api_server::server_config", []Value{
		{Text: "{endpoint: 127.0.0.1:$PORT, read_timeout: 1s}", With: "receivers: {$ID: {api_server: {enabled: true}}}"},
		{Text: "{endpoint: 127.0.0.1:$BUSY}", With: "receivers: {$ID: {api_server: {enabled: true}}}"},
	}},
	{"scrape_on_shutdown", values("true")},
	{"discovery_reload_on_startup", values("true")},
	{"initial_scrape_offset", values("100ms")},
	{"sharding::members", []Value{{Text: "2", Loses: true}}},
	{"sharding::index", []Value{{Text: "1", With: "receivers: {$ID: {sharding: {members: 2}}}", Loses: true}}},
	{"sharding::replication", []Value{{Text: "2", With: "receivers: {$ID: {sharding: {members: 2}}}"}}},
	{"series_limit", []Value{{Text: "100000"}, {Text: "5", Loses: true}}},
	{"stale_markers", values("false")},
	{"job_and_instance", values("true")},
	{"keep_job_and_instance", values("true")},
	{"reuse", values("never", "always")},
	{"local_identity", values("false")},
	{"align_scrapes", values("true", "false")},
	{"max_concurrent_scrapes", values("1")},
	{"max_body_size", []Value{{Text: "100000"}, {Text: "50", Loses: true}}},
	{"max_page_memory", []Value{{Text: "100000000"}, {Text: "1", Loses: true}}},
	{"reload_interval", values("100ms", "0s")},
}

var limiting = []Option{
	{"mode", values("dry_run")},
	{"idle_timeout", values("1m")},
	{"memory::max_series", []Value{{Text: "100000"}, {Text: "3", Loses: true}}},
	{"memory::max_groups", []Value{{Text: "10"}, {Text: "1", Loses: true}}},
	{"memory::overflow_state_mib", values("1")},
	{"memory::aggregate_state_mib", values("1")},
	{"tenant::from", values("[metadata:x-tenant]", `["resource:service.name"]`)},
	{"tenant::metadata_keys", values("[x-tenant, x-team]")},
	{"exempt::*::metric", values("[{metric: beat}]")},
	{"exempt::*::scope", values("[{scope: 'b*'}]")},
	{"exempt::*::tenant", []Value{{Text: "[{tenant: 'regex:n.*'}]", With: "processors: {cardinality: {tenant: {from: ['resource:service.name']}}}"}}},
	{"exempt::*::resource", values("[{resource: {service.name: fast}}]")},
	{"exempt::*::attributes", values("[{attributes: {le: '*'}}]")},
	{"defaults::max_series_per_metric", losing("1", "3")},
	{"defaults::on_exceed", []Value{
		{Text: "[drop]", With: "processors: {cardinality: {defaults: {max_series_per_metric: 1}}}", Loses: true},
		{Text: "[collapse_worst, overflow]", With: "processors: {cardinality: {defaults: {max_series_per_metric: 1}}}", Loses: true},
		{Text: "[sample, overflow]", With: "processors: {cardinality: {defaults: {max_series_per_metric: 1, sample_rate: 0.5}}}", Loses: true},
	}},
	{"defaults::keep_labels", []Value{{Text: "[service.name]", With: "processors: {cardinality: {defaults: {max_series_per_metric: 1}, overflow: {interval: 1s}}}", Loses: true}}},
	{"defaults::sample_rate", values("0.5")},
	{"defaults::gauge", []Value{
		{Text: "last", With: "processors: {cardinality: {defaults: {max_series_per_metric: 1}, overflow: {interval: 1s}}}", Loses: true},
		{Text: "mean", With: "processors: {cardinality: {defaults: {max_series_per_metric: 1}, overflow: {interval: 1s}}}", Loses: true},
	}},
	{"overflow::interval", []Value{{Text: "1s", With: "processors: {cardinality: {defaults: {max_series_per_metric: 1}}}", Loses: true}}},
	{"rules::*::name", values("[{name: one}]")},
	{"overflow::keep_service", []Value{{Text: "false", With: "processors: {cardinality: {defaults: {max_series_per_metric: 1}, overflow: {interval: 1s}}}", Loses: true}}},
	{"rules::*::match::metric", losing("[{name: one, match: {metric: 'b*'}, max_series: 1}]", "[{name: one, match: {metric: 'not:regex:b.*'}, max_series: 1}]")},
	{"rules::*::match::scope", losing("[{name: one, match: {scope: 'not:b*'}, max_series: 1}]")},
	{"rules::*::match::tenant", []Value{{Text: "[{name: one, match: {tenant: 'not:north'}, max_series: 1}]", With: "processors: {cardinality: {tenant: {from: ['resource:service.name']}}}", Loses: true}}},
	{"rules::*::match::resource", losing("[{name: one, match: {resource: {service.name: '*'}}, max_series: 1}]")},
	{"rules::*::match::attributes", losing("[{name: one, match: {attributes: {le: '*'}}, max_series: 1}]")},
	{"rules::*::owner", losing("[{name: one, owner: {team: flocks}, max_series: 2}]")},
	{"rules::*::group_by", losing(`[{name: one, group_by: ["resource:service.name"], max_series: 2}]`)},
	{"rules::*::max_series", losing("[{name: one, max_series: 1}]")},
	{"rules::*::max_new_series_per_minute", losing("[{name: one, max_new_series_per_minute: 1}]")},
	{"rules::*::max_points_per_second", losing("[{name: one, max_points_per_second: 1}]")},
	{"rules::*::adaptive::share_by", losing(`[{name: one, max_series: 5, adaptive: {share_by: ["resource:service.name"]}}]`)},
	{"rules::*::adaptive::priority::by", losing(`[{name: one, max_series: 5, adaptive: {share_by: ["resource:service.name"], priority: {by: "resource:tier", order: [gold, lead]}}}]`)},
	{"rules::*::adaptive::priority::order", losing(`[{name: one, max_series: 5, adaptive: {share_by: ["resource:service.name"], priority: {by: "resource:tier", order: [a]}}}]`)},
	{"rules::*::label_limits", losing("[{name: one, label_limits: {le: 1, flock: 1}}]", `[{name: one, label_limits: {"resource:service.instance.id": 0}}]`)},
	{"rules::*::aggregate::by", losing("[{name: one, aggregate: {by: [flock], interval: 1s}}]")},
	{"rules::*::aggregate::without", losing(`[{name: one, aggregate: {without: ["attribute:flock"], interval: 1s}}]`)},
	{"rules::*::aggregate::interval", losing("[{name: one, aggregate: {by: [], interval: 2s}}]")},
	{"rules::*::aggregate::outputs", losing("[{name: one, aggregate: {by: [flock], interval: 1s, outputs: [sum, count, min, max, avg, last]}}]")},
	{"rules::*::aggregate::keep_input", values("[{name: one, aggregate: {by: [flock], interval: 1s, keep_input: true}}]")},
	{"rules::*::on_exceed", losing("[{name: one, max_series: 1, on_exceed: [overflow]}]")},
	{"rules::*::keep_labels", losing("[{name: one, max_series: 1, keep_labels: [flock], on_exceed: [overflow]}]")},
	{"rules::*::sample_rate", losing("[{name: one, max_series: 1, on_exceed: [sample, drop], sample_rate: 0.1}]")},
	{"rules::*::gauge", losing("[{name: one, max_series: 1, gauge: max}]", "[{name: one, max_series: 1, gauge: min}]")},
	{"rules_file", losing("$DIR/rules.yaml")},
	{"rules_poll_interval", []Value{{Text: "1s", With: "processors: {cardinality: {rules_file: $DIR/rules.yaml}}", Loses: true}}},
	{"storage", []Value{{Text: "file_storage", With: stored}}},
	{"snapshot_interval", []Value{{Text: "1s", With: "processors: {cardinality: {storage: file_storage}}\n" + stored}}},
	{"statistics::enabled", values("false")},
	{"overrides::*::max_series", tenanted("{'*': {max_series: 1}}")},
	{"overrides::*::max_series_per_metric", tenanted("{'*': {max_series_per_metric: 1}}")},
	{"overrides::*::max_new_series_per_minute", tenanted("{'*': {max_new_series_per_minute: 1}}")},
	{"overrides::*::max_points_per_second", tenanted("{'*': {max_points_per_second: 1}}")},
	{"overrides::*::rules::*::max_series", tenanted("{'*': {rules: {one: {max_series: 1}}}}")},
	{"overrides::*::rules::*::max_new_series_per_minute", tenanted("{'*': {rules: {one: {max_new_series_per_minute: 1}}}}")},
	{"overrides::*::rules::*::max_points_per_second", tenanted("{'*': {rules: {one: {max_points_per_second: 1}}}}")},
	{"overrides::*::rules::*::label_limits", tenanted("{'*': {rules: {one: {label_limits: {le: 1}}}}}")},
	{"shared", values("true", "false")},
}

// The other process needs settings that match the agent's destination.
var writingToTheGateway = []Option{
	{"http::tls", []Value{{
		Text: "{ca_file: $DIR/cert.pem}", With: "exporters: {remotewrite: {endpoint: https://$WRITE/api/v1/write}}",
		Peer: "receivers: {remotewrite: {tls: {cert_file: $DIR/cert.pem, key_file: $DIR/key.pem}}}",
	}}},
}

var wroteApart = func() map[string]string {
	apart := map[string]string{"endpoint": "each configuration has one"}
	for _, key := range []string{
		"azuread::cloud", "azuread::scope", "azuread::managed_identity::client_id", "azuread::sdk::tenant_id",
		"azuread::oauth::client_id", "azuread::oauth::client_secret", "azuread::oauth::tenant_id",
		"azuread::workload_identity::client_id", "azuread::workload_identity::tenant_id", "azuread::workload_identity::token_file_path",
		"google_iam::credentials_file",
	} {
		apart[key], apart["endpoints::*::"+key] = "only a cloud has its tokens", "only a cloud has its tokens"
	}
	return apart
}()

var writing = []Option{
	{"http::headers", values("{X-Flock: north}")},
	{"http::read_buffer_size", values("1024")},
	{"http::max_conns_per_host", values("1")},
	{"http::force_attempt_http2", values("true")},
	{"http::disable_keep_alives", values("true")},
	{"endpoints", []Value{{Text: "[{endpoint: $DESTINATION}, {endpoint: http://127.0.0.1:$PORT/nobody}]", With: "exporters: {remotewrite: {endpoint: '', shutdown_timeout: 2s}}"}}},
	{"shard_by_url::enabled", []Value{{Text: "true", With: "exporters: {remotewrite: {endpoint: '', endpoints: [{endpoint: $DESTINATION}, {endpoint: '$DESTINATION#b'}], shard_by_url: {replicas: 1}}}"}}},
	{"shard_by_url::replicas", []Value{{Text: "2", With: "exporters: {remotewrite: {endpoint: '', shutdown_timeout: 2s, endpoints: [{endpoint: $DESTINATION}, {endpoint: http://127.0.0.1:$PORT/nobody}], shard_by_url: {enabled: true}}}"}}},
	{"shard_by_url::labels", []Value{{Text: "[job]", With: "exporters: {remotewrite: {endpoint: '', endpoints: [{endpoint: $DESTINATION}, {endpoint: '$DESTINATION#b'}], shard_by_url: {enabled: true}}}"}}},
	{"shard_by_url::ignore_labels", []Value{{Text: "[le]", With: "exporters: {remotewrite: {endpoint: '', endpoints: [{endpoint: $DESTINATION}, {endpoint: '$DESTINATION#b'}], shard_by_url: {enabled: true}}}"}}},
	{"timeout", values("5s")},
	{"protobuf_message", values("'1.0'", "'2.0'", "prometheus.WriteRequest")},
	{"compression", values("snappy", "zstd")},
	{"compression_level", values("2", "4")},
	{"reprobe_interval", values("1s")},
	{"batch::max_samples", values("1", "7")},
	{"batch::max_bytes", values("1", "1000")},
	{"batch::max_raw_bytes", values("1", "1000")},
	{"batch::timeout", values("0s", "1ms")},
	{"queue::size", values("1", "100000")},
	{"queue::storage", []Value{{Text: "file_storage", With: stored}}},
	{"queue::directory", values("$DIR/store/queue")},
	{"queue::fsync", []Value{{Text: "false", With: "exporters: {remotewrite: {queue: {directory: $DIR/store/queue}}}"}}},
	{"queue::on_full", values("drop_oldest", "drop_newest")},
	{"queue::fresh_first_after", values("1ms", "1m")},
	{"queue::max_age", values("1m")},
	{"queue::max_batches", values("1000")},
	{"queue::wait_for_result", values("true")},
	{"queue::block_timeout", values("1s", "0s")},
	{"retry::initial_interval", values("1ms")},
	{"retry::randomization_factor", values("0", "1")},
	{"retry::multiplier", values("1")},
	{"retry::max_interval", values("1s")},
	{"retry::max_elapsed_time", values("1m")},
	{"retry::max_retry_after", values("1s")},
	{"retry::status_codes", values("[]", "[401]")},
	{"shards::min", values("4")},
	{"shards::max", values("1", "64")},
	{"rate_limit::bytes_per_second", values("100000")},
	{"rate_limit::samples_per_second", values("20000")},
	{"endpoints::*::rate_limit::bytes_per_second", []Value{{Text: "[{endpoint: $DESTINATION, rate_limit: {bytes_per_second: 100000}}]", With: "exporters: {remotewrite: {endpoint: ''}}"}}},
	{"endpoints::*::rate_limit::samples_per_second", []Value{{Text: "[{endpoint: $DESTINATION, rate_limit: {samples_per_second: 20000}}]", With: "exporters: {remotewrite: {endpoint: ''}}"}}},
	{"endpoints::*::queue::size", []Value{{Text: "[{endpoint: $DESTINATION, queue: {size: 100000}}]", With: "exporters: {remotewrite: {endpoint: ''}}"}}},
	{"endpoints::*::queue::on_full", []Value{{Text: "[{endpoint: $DESTINATION, queue: {on_full: drop_oldest}}]", With: "exporters: {remotewrite: {endpoint: ''}}"}}},
	{"endpoints::*::queue::fresh_first_after", []Value{{Text: "[{endpoint: $DESTINATION, queue: {fresh_first_after: 1m}}]", With: "exporters: {remotewrite: {endpoint: ''}}"}}},
	{"endpoints::*::queue::max_age", []Value{{Text: "[{endpoint: $DESTINATION, queue: {max_age: 1m}}]", With: "exporters: {remotewrite: {endpoint: ''}}"}}},
	{"endpoints::*::protobuf_message", []Value{{Text: "[{endpoint: $DESTINATION, protobuf_message: '1.0'}]", With: "exporters: {remotewrite: {endpoint: ''}}"}}},
	{"endpoints::*::write_relabel_configs::*::source_labels", ruled("{source_labels: [__name__, instance], target_label: new}")},
	{"endpoints::*::write_relabel_configs::*::separator", ruled("{source_labels: [__name__, job], separator: '@', target_label: new}")},
	{"endpoints::*::write_relabel_configs::*::regex", ruled("{regex: none.*, action: labeldrop}")},
	{"endpoints::*::write_relabel_configs::*::modulus", ruled("{source_labels: [instance], modulus: 1, target_label: part, action: hashmod}")},
	{"endpoints::*::write_relabel_configs::*::target_label", ruled("{source_labels: [job], target_label: copy}")},
	{"endpoints::*::write_relabel_configs::*::replacement", ruled("{target_label: flock, replacement: north}")},
	{"endpoints::*::write_relabel_configs::*::action", ruled("{regex: (.*), replacement: new_$1, action: labelmap}")},
	{"endpoints::*::compression", []Value{{Text: "[{endpoint: $DESTINATION, compression: snappy}]", With: "exporters: {remotewrite: {endpoint: ''}}"}}},
	{"circuit_breaker::consecutive_failures", values("0", "1")},
	{"circuit_breaker::open_for", values("100ms")},
	{"tenant::header", []Value{{Text: "X-Scope-OrgID", With: "exporters: {remotewrite: {tenant: {from_metadata: x-tenant}}}"}}},
	{"tenant::from_metadata", []Value{{Text: "x-tenant", With: "exporters: {remotewrite: {tenant: {header: X-Scope-OrgID}}}"}}},
	{"tenant::from_resource_attribute", []Value{{Text: "service.name", With: "exporters: {remotewrite: {tenant: {header: X-Scope-OrgID}}}"}}},
	{"tenant::default", []Value{{Text: "flock", With: "exporters: {remotewrite: {tenant: {header: X-Scope-OrgID, from_metadata: x-tenant}}}"}}},
	{"tenant::metadata_keys", values("[x-tenant, x-team]")},
	{"tenant::max", []Value{{Text: "1", With: "exporters: {remotewrite: {tenant: {header: X-Scope-OrgID, from_resource_attribute: service.name}}}", Loses: true}}},
	{"cache::max_series", values("1", "10")},
	{"cache::idle_timeout", values("1s")},
	{"shutdown_timeout", []Value{{Text: "20s"}, {Text: "0s", Loses: true}}},
	{"translation_strategy", values("UnderscoreEscapingWithoutSuffixes", "NoUTF8EscapingWithSuffixes", "NoTranslation")},
	{"keep_scraped_names", values("false")},
	{"strict_labels", values("true")},
	{"label_name_underscore_sanitization", values("true")},
	{"type_and_unit_labels", values("true")},
	{"namespace", values("geese")},
	{"external_labels", values("{cluster: north}")},
	{"target_info::enabled", values("false")},
	{"target_info::interval", values("1s", "0s")},
	{"scope_labels", values("always", "never")},
	{"promote_resource_attributes", values("['*']", "[service.name]")},
	{"exclude_resource_attributes", []Value{{Text: "['server.*']", With: "exporters: {remotewrite: {promote_resource_attributes: ['*']}}"}}},
	{"resource_attributes_win", []Value{{Text: "true", With: "exporters: {remotewrite: {promote_resource_attributes: ['*']}}"}}},
	{"send_metadata", values("false")},
	{"exemplars", values("false")},
	{"start_timestamps", values("false")},
	{"convert_explicit_histograms_to_nhcb", values("true")},
	{"keep_classic_histograms", []Value{{Text: "true", With: "exporters: {remotewrite: {convert_explicit_histograms_to_nhcb: true}}"}}},
	{"delta::to_cumulative", values("true")},
	{"delta::max_series", []Value{{Text: "1", With: "exporters: {remotewrite: {delta: {to_cumulative: true}}}"}}},
}

// relabelling are rules for series, which both exporters support.
var relabelling = []Option{
	{"write_relabel_configs::*::source_labels", []Value{{Text: "[{source_labels: [__name__, instance], target_label: new}]"}, {Text: "[{source_labels: [job], action: drop}]", Loses: true}}},
	{"write_relabel_configs::*::separator", values("[{source_labels: [__name__, job], separator: '@', target_label: new}]")},
	{"write_relabel_configs::*::regex", values("[{regex: none.*, action: labeldrop}]")},
	{"write_relabel_configs::*::modulus", values("[{source_labels: [instance], modulus: 1, target_label: part, action: hashmod}, {source_labels: [part], regex: 0, action: keep}]")},
	{"write_relabel_configs::*::target_label", values("[{source_labels: [job], target_label: copy}]")},
	{"write_relabel_configs::*::replacement", values("[{target_label: flock, replacement: north}]")},
	{"write_relabel_configs::*::action", values("[{regex: (.*), replacement: new_$1, action: labelmap}]", "[{source_labels: [le], target_label: new, action: uppercase}]")},
}

var dropIn = []Option{
	{"http::endpoint", values("$SECOND")},
	{"headers", values("{X-Flock: north}")},
	{"compression", values("zstd")},
	{"timeout", values("5s")},
	{"retry_on_failure::initial_interval", values("1ms")},
	{"retry_on_failure::enabled", values("false")},
	{"remote_write_queue::enabled", values("false")},
	{"remote_write_queue::queue_size", []Value{{Text: "1", Loses: true}, {Text: "10", Loses: true}, {Text: "1000"}}}, // a burst has over ten batches
	{"remote_write_queue::num_consumers", values("0", "1", "20")},
	{"wal::directory", values("$DIR/wal")},
	{"wal::buffer_size", []Value{{Text: "1", With: "exporters: {prometheusremotewrite: {wal: {directory: $DIR/wal}}}"}}},
	{"wal::truncate_frequency", []Value{{Text: "1s", With: "exporters: {prometheusremotewrite: {wal: {directory: $DIR/wal}}}"}}},
	{"wal::lag_record_frequency", []Value{{Text: "1s", With: "exporters: {prometheusremotewrite: {wal: {directory: $DIR/wal}}}"}}},
	{"max_batch_size_bytes", values("1", "1000")},
	{"max_batch_request_parallelism", values("1", "8")},
	{"protobuf_message", values("io.prometheus.write.v2.Request")},
	{"include_metadata_keys", values("[x-tenant]")},
	{"namespace", values("geese")},
	{"external_labels", values("{cluster: north}")},
	{"resource_to_telemetry_conversion::enabled", values("true")},
	{"resource_to_telemetry_conversion::exclude_service_attributes", []Value{{Text: "true", With: "exporters: {prometheusremotewrite: {resource_to_telemetry_conversion: {enabled: true}}}"}}},
	{"target_info::enabled", values("false")},
	{"disable_scope_info", values("true")},
	{"add_metric_suffixes", values("false")},
	{"translation_strategy", []Value{{Text: "UnderscoreEscapingWithSuffixes"}, {Text: "NoUTF8EscapingWithSuffixes", With: "exporters: {prometheusremotewrite: {protobuf_message: io.prometheus.write.v2.Request}}"}}},
	{"send_metadata", values("true")},
	{"convert_explicit_histograms_to_nhcb", []Value{{Text: "true", With: "exporters: {prometheusremotewrite: {protobuf_message: io.prometheus.write.v2.Request}}"}}},
	{"keep_classic_histograms", []Value{{Text: "true", With: "exporters: {prometheusremotewrite: {convert_explicit_histograms_to_nhcb: true}}"}}},
}

const overHTTP = "exporters: {otlpstream: {transport: http, endpoint: http://$SOCKET}}"

var streaming = []Option{
	{"headers", values("{x-flock: north}")},
	{"compression", values("none", "gzip", "snappy")},
	{"balancer_name", values("pick_first")},
	{"keepalive", values("{time: 10s, timeout: 10s}")},
	{"endpoints::*::name", []Value{{Text: "[{name: one, endpoint: $STREAM, tls: {insecure: true}}, {name: nobody, endpoint: 127.0.0.1:$PORT, tls: {insecure: true}}]", With: "exporters: {otlpstream: {endpoint: '', shutdown: {timeout: 2s}}}"}}},
	{"endpoints::*::compression", []Value{{Text: "[{name: one, endpoint: $STREAM, compression: gzip, tls: {insecure: true}}]", With: "exporters: {otlpstream: {endpoint: ''}}"}}},
	{"transport", []Value{
		{Text: "websocket", With: "exporters: {otlpstream: {endpoint: http://$SOCKET}}"},
		{Text: "http", With: overHTTP},
		{Text: "http", With: "exporters: {otlpstream: {endpoint: http://$SOCKET, compression: gzip}}"},
	}},
	{"http::traces_endpoint", []Value{{Text: "http://$SOCKET/v1/traces", With: overHTTP}}},
	{"http::metrics_endpoint", []Value{{Text: "http://$SOCKET/v1/metrics", With: overHTTP}}},
	{"http::logs_endpoint", []Value{{Text: "http://$SOCKET/v1/logs", With: overHTTP}}},
	{"http::proxy_url", []Value{{Text: "''", With: overHTTP}}},
	{"http::max_conns_per_host", []Value{{Text: "1", With: overHTTP}}},
	{"http::idle_conn_timeout", []Value{{Text: "1s", With: overHTTP}}},
	{"http::disable_keep_alives", []Value{{Text: "true", With: overHTTP}}},
	{"http::force_attempt_http2", []Value{{Text: "false", With: overHTTP}}},
	{"http::cookies", []Value{{Text: "{}", With: overHTTP}}},
	{"mode", values("stream", "unary")},
	{"reprobe_interval", values("1s")},
	{"ordered", values("true")},
	{"metadata_keys", values("[x-flock]", "[]")},
	{"metadata_cardinality_limit", []Value{{Text: "1", With: "exporters: {otlpstream: {metadata_keys: [x-flock]}}"}}},
	{"streams", values("1", "9")},
	{"connections", values("3")},
	{"rebalance::scope", values("connection")},
	{"rebalance::timeout", values("0s", "500ms")},
	{"rebalance::requests", values("1", "3")},
	{"rebalance::bytes", values("1", "100000")},
	{"rebalance::delta_timeout", values("0s", "1s")},
	{"history_bytes", values("0", "20000")},
	{"in_flight::requests", values("1")},
	{"in_flight::bytes", values("1", "100000")},
	{"timeout", values("10s")},
	{"arrow", values("{num_streams: 2}")},
	{"ack_timeout", values("5s", "5m")},
	{"resend_unacked", values("false")},
	{"shutdown::wait_for_acks", []Value{{Text: "false", Loses: true}}},
	{"shutdown::timeout", values("5s")},
	{"retry_on_failure::initial_interval", values("10ms")},
	{"sending_queue::queue_size", values("10000", "100")},
	{"sending_queue::sizer", []Value{{Text: "items", With: "exporters: {otlpstream: {sending_queue: {queue_size: 100000}}}"}, {Text: "bytes", With: "exporters: {otlpstream: {sending_queue: {queue_size: 10000000}}}"}}},
	{"sending_queue::block_on_overflow", values("true")},
	{"sending_queue::storage", []Value{{Text: "file_storage", With: stored}}},
	{"sending_queue::num_consumers", values("4")},
	{"sending_queue::wait_for_result", values("true")},
	{"sending_queue::batch", values("{flush_timeout: 50ms, min_size: 100}")},
}

var console = []Option{
	{"endpoint", values("127.0.0.1:$BUSY", "localhost:$PORT")},
	{"max_request_body_size", values("100")},
	{"read_timeout", values("1s")},
	{"write_timeout", values("1s")},
	{"idle_timeout", values("1s")},
	{"response_headers", values("{X-Flock: north}")},
	{"keep_alives_enabled", values("false")},
	{"allowed_hosts", values("[console.example.com]")},
	{"tls", values("{cert_file: $DIR/cert.pem, key_file: $DIR/key.pem}")},
}

var pulse = []Option{
	{"interval", values("1s", "0s")},
	{"first", values("1ms", "0s")},
	{"look", values("{here: 'http://localhost:1/'}")},
	{"metrics_endpoint", values("http://127.0.0.1:$PORT/metrics")},
}

var profile = []Option{
	{"profile", values("minimal", "performance", "auto")},
	{"gogc", values("10", "1000")},
	{"memory_limit", values("64MiB", "10%", "100%")},
	{"refresh_interval", values("1s")},
	{"release_binary_pages", values("true")},
}

var written = []Option{
	{"include_metadata", values("true")},
	{"max_request_body_size", values("100000000")},
	{"read_header_timeout", values("5s")},
	{"keep_alives_enabled", values("false")},
	{"path", []Value{{Text: "/elsewhere", Peer: "exporters: {remotewrite: {endpoint: http://$WRITE/elsewhere}}"}}},
	{"max_decoded_body_size", values("1000000")},
	{"max_memory", values("16777216", "268435456")},
	{"scopes_from_labels", values("true")},
	{"target_info::to_resource", values("true")},
	{"target_info::max_targets", []Value{{Text: "1", With: "receivers: {remotewrite: {target_info: {to_resource: true}}}"}}},
	{"target_info::tenant_header", []Value{{Text: "X-Team", With: "receivers: {remotewrite: {target_info: {to_resource: true}}}"}}},
	{"replicas::deduplicate", values("true")},
	{"replicas::cluster_label", []Value{{Text: "flock", With: "receivers: {remotewrite: {replicas: {deduplicate: true}}}"}}},
	{"replicas::replica_label", []Value{{Text: "replica", With: "receivers: {remotewrite: {replicas: {deduplicate: true}}}"}}},
	{"replicas::failover_timeout", values("1s")},
	{"replicas::max_clusters", values("1")},
	{"replicas::tenant_header", values("X-Flock")},
}

var streamed = []Option{
	{"protocols::grpc", values(
		"{endpoint: $STREAM, max_concurrent_streams: 100}",
		"{endpoint: $STREAM, read_buffer_size: 1024, write_buffer_size: 1024}",
		"{endpoint: $STREAM, include_metadata: true, max_recv_msg_size_mib: 4}",
		"{endpoint: $STREAM, keepalive: {server_parameters: {max_connection_age: 1s, max_connection_age_grace: 1s}}}",
	)},
	{"protocols::http", values(
		"{endpoint: $SOCKET, include_metadata: true}",
		"{endpoint: $SOCKET, read_timeout: 5s, write_timeout: 5s}",
	)},
	{"in_flight::bytes", values("100000000", "1000000")},
	{"in_flight::requests_per_stream", values("1")},
	{"in_flight::bytes_per_stream", values("1", "100000")},
	{"streams::max", values("10", "100000")},
	{"streams::max_age", values("0s", "500ms")},
	{"streams::max_requests", values("1", "3")},
	{"streams::memory", values("0", "1000000")},
	{"deduplicate::enabled", values("true")},
	{"deduplicate::max_slots", []Value{{Text: "1", With: "receivers: {otlpstream: {deduplicate: {enabled: true}}}"}}},
	{"drain_timeout", values("1s", "1m")},
}
