// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/confkeys"
)

// Config is the configuration of the remotewrite exporter.
type Config struct {
	// Endpoint is the URL to write to, for example https://prometheus:9090/api/v1/write. The same as http.endpoint.
	Endpoint string `mapstructure:"endpoint"`
	// HTTP is the client for Endpoint: tls, auth, headers, proxy_url and so on. HTTP/1.1 unless force_attempt_http2.
	HTTP confighttp.ClientConfig `mapstructure:"http"`
	// Endpoints are several destinations for the same data, each with its own client, instead of Endpoint and
	// HTTP. Data is encoded and stored once; each destination has its own queue, retries and fallbacks, and may have its own policies.
	Endpoints []EndpointConfig `mapstructure:"endpoints"`
	// AzureAD and GoogleIAM authenticate requests to Endpoint at these clouds. Default none.
	AzureAD   *AzureADConfig   `mapstructure:"azuread"`
	GoogleIAM *GoogleIAMConfig `mapstructure:"google_iam"`
	// ShardByURL sends each series to one or some of Endpoints, instead of all.
	ShardByURL ShardByURLConfig `mapstructure:"shard_by_url"`
	// Timeout limits one attempt to send a request, including the answer, for clients that set none. Default 30s.
	Timeout time.Duration `mapstructure:"timeout"`

	// ProtobufMessage is the version of the protocol: auto, 2.0 (io.prometheus.write.v2.Request) or 1.0
	// (prometheus.WriteRequest). auto begins with 2.0 and falls back. Default auto.
	ProtobufMessage string `mapstructure:"protobuf_message"`
	// Compression is auto, zstd or snappy. auto begins with zstd and falls back. Default auto.
	Compression string `mapstructure:"compression"`
	// CompressionLevel is from 1, fastest, to 4, smallest. Default 1.
	CompressionLevel int `mapstructure:"compression_level"`
	// ReprobeInterval is how long a fallback lasts before the best format is tried again. Default 1h.
	ReprobeInterval time.Duration `mapstructure:"reprobe_interval"`

	Batch          BatchConfig   `mapstructure:"batch"`
	Queue          QueueConfig   `mapstructure:"queue"`
	Retry          RetryConfig   `mapstructure:"retry"`
	Shards         ShardsConfig  `mapstructure:"shards"`
	CircuitBreaker BreakerConfig `mapstructure:"circuit_breaker"`
	Tenant         TenantConfig  `mapstructure:"tenant"`
	Cache          CacheConfig   `mapstructure:"cache"`
	// RateLimit applies to each destination that does not set its own.
	RateLimit RateLimitConfig `mapstructure:"rate_limit"`
	// ShutdownTimeout limits how long a shutdown waits for data queued in memory to be sent. The rest
	// is dropped and counted. With queue.storage or queue.directory data stays stored, and only requests in flight are waited for. Default 10s.
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout"`

	Names  NamesConfig  `mapstructure:",squash"`
	Labels LabelsConfig `mapstructure:",squash"`
	Points PointsConfig `mapstructure:",squash"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Unmarshal reports unknown keys with suggestions.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confkeys.Unmarshal(conf, c, contribs) }

// contribs maps keys of contrib's exporter to advice. The exporter prometheus_remote_write has contrib's own keys.
var contribs = map[string]string{
	"sending_queue":                    "it is `queue`, whose `size` counts bytes",
	"remote_write_queue":               "it is `queue`, whose `size` counts bytes",
	"retry_on_failure":                 "it is `retry`",
	"wal":                              "it is `queue::directory`",
	"add_metric_suffixes":              "it is `translation_strategy`",
	"resource_to_telemetry_conversion": "it is `promote_resource_attributes: [\"*\"]`",
}

// BatchConfig limits a request. Whichever limit is reached first ends it.
type BatchConfig struct {
	// MaxSamples is the maximum of samples in a request. Default 50000: large requests compress better.
	MaxSamples int `mapstructure:"max_samples"`
	// MaxBytes is the approximate maximum of bytes of a request after compression. Default 4 MiB.
	MaxBytes int `mapstructure:"max_bytes"`
	// MaxRawBytes is the maximum of bytes of a request before compression. Default 8 MiB.
	MaxRawBytes int `mapstructure:"max_raw_bytes"`
	// Timeout is how long data waits for more; up to five times as long while every destination has unsent requests for every shard.
	// With queue.storage, where callers wait as long, that is only while destinations answer. Default 1s, or 200ms with queue.storage or queue.directory.
	Timeout time.Duration `mapstructure:"timeout"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// QueueConfig is the queue of each destination.
type QueueConfig struct {
	// Size is the maximum of bytes of compressed requests in a destination's queue. Data being encoded comes
	// on top, at most a few requests. Default 0: 64 MiB; in memory an eighth of what the process may use if that is less, at least 1 MiB.
	Size int64 `mapstructure:"size"`
	// Storage is the ID of a storage extension that keeps the queue. Data is then acknowledged to the pipeline once
	// it is stored, and survives the process. Default none: the queue is in memory.
	Storage *component.ID `mapstructure:"storage"`
	// Directory is a folder for the queue, in the exporter's own files. They are deleted when their data is delivered, and what can be
	// read of damaged ones is sent. If the storage extension file_storage has a file of this exporter in the same folder,
	// it is sent first, and then deleted. With both set, Storage is used. Default none.
	Directory string `mapstructure:"directory"`
	// FSync waits for the disk with each write to Directory, so that acknowledged data survives the machine, too. Default true.
	FSync bool `mapstructure:"fsync"`
	// OnFull is what happens when a queue is full: block makes the pipeline wait; drop_oldest drops the oldest
	// data; drop_newest refuses new data with an error. Default block.
	OnFull string `mapstructure:"on_full"`
	// BlockTimeout is how long block makes the pipeline wait for space, and WaitForResult for the result. It then gets a
	// retryable error. A shutdown waits for waiting callers. Default 15s; 0 is for ever.
	BlockTimeout time.Duration `mapstructure:"block_timeout"`
	// FreshFirstAfter is how long data may wait before newer data is sent first, for destinations that accept samples out of
	// order. Default 0: the oldest data is always sent first.
	FreshFirstAfter time.Duration `mapstructure:"fresh_first_after"`
	// MaxAge drops data that has been queued for longer. Default 0: none.
	MaxAge time.Duration `mapstructure:"max_age"`
	// MaxBatches limits how many of the pipeline's batches may be undelivered, besides Size. Not with Storage or Directory. Default 0: any
	// number.
	MaxBatches int64 `mapstructure:"max_batches"`
	// WaitForResult makes callers wait until every destination is done with their data, and returns an error if one
	// did not get it. Not with Storage or Directory. Default false.
	WaitForResult bool `mapstructure:"wait_for_result"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// RetryConfig says when failed requests are retried. 5xx, 408, 429 and network failures always are.
type RetryConfig struct {
	// InitialInterval is the pause after the first failure. Default 500ms.
	InitialInterval time.Duration `mapstructure:"initial_interval"`
	// RandomizationFactor varies the pauses of a request by up to this fraction, by the same for all of them. At least a tenth of each is left.
	// Default 0.5.
	RandomizationFactor float64 `mapstructure:"randomization_factor"`
	// Multiplier lengthens each pause. Default 2.
	Multiplier float64 `mapstructure:"multiplier"`
	// MaxInterval is the longest pause. Default 30s.
	MaxInterval time.Duration `mapstructure:"max_interval"`
	// MaxElapsedTime drops data this long after its first attempt. Default 0: never.
	MaxElapsedTime time.Duration `mapstructure:"max_elapsed_time"`
	// MaxRetryAfter is the longest pause that a destination can request with Retry-After. Default 5m.
	MaxRetryAfter time.Duration `mapstructure:"max_retry_after"`
	// StatusCodes are 4xx codes that are also retried, at max_interval, because correcting a configuration ends them.
	// Default [401, 403, 404, 405, 407, 421].
	StatusCodes []int `mapstructure:"status_codes"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// ShardsConfig limits parallelism: each shard has one request in flight, and each series one shard.
type ShardsConfig struct {
	// Min and Max limit the number of shards, which follows throughput and latency. Defaults 1 and 16.
	Min int `mapstructure:"min"`
	Max int `mapstructure:"max"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// BreakerConfig is a circuit breaker for each destination.
type BreakerConfig struct {
	// ConsecutiveFailures open it: from then on one request at a time probes. Default 5; 0 turns it off.
	ConsecutiveFailures int `mapstructure:"consecutive_failures"`
	// OpenFor is the pause before each probe. Default 10s.
	OpenFor time.Duration `mapstructure:"open_for"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// RateLimitConfig limits what a destination is sent, including retries. The rest waits in the queue.
type RateLimitConfig struct {
	// BytesPerSecond is of bodies, after compression. Default 0: any number.
	BytesPerSecond int `mapstructure:"bytes_per_second"`
	// SamplesPerSecond counts native histograms as one. Default 0: any number.
	SamplesPerSecond int `mapstructure:"samples_per_second"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// TenantConfig identifies the tenant of data.
type TenantConfig struct {
	// Header is the header with the tenant, for example X-Scope-OrgID. Default none: there are no tenants.
	Header string `mapstructure:"header"`
	// FromMetadata is the key of client metadata that names the tenant, FromResourceAttribute the resource
	// attribute. One of them.
	FromMetadata          string `mapstructure:"from_metadata"`
	FromResourceAttribute string `mapstructure:"from_resource_attribute"`
	// Default is the tenant of data that names none. Default none: no header is sent.
	Default string `mapstructure:"default"`
	// MetadataKeys are keys of client metadata that are sent as headers of the same names, with all their values: clients that
	// differ in one are different tenants. Instead of the keys above.
	MetadataKeys []string `mapstructure:"metadata_keys"`
	// Max limits the number of tenants; data of further ones is dropped and counted. Default 1000.
	Max int `mapstructure:"max"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// CacheConfig limits the cache of encoded labels.
type CacheConfig struct {
	// MaxSeries is the maximum of points recognised; further ones are translated each time.
	// Default 1000000.
	MaxSeries int `mapstructure:"max_series"`
	// IdleTimeout forgets points not seen for about this long. Default 10m.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// NamesConfig says how names of metrics and labels are written.
type NamesConfig struct {
	// TranslationStrategy is how names become Prometheus names: UnderscoreEscapingWithSuffixes,
	// UnderscoreEscapingWithoutSuffixes, NoUTF8EscapingWithSuffixes or NoTranslation; the last two need 2.0.
	// Default UnderscoreEscapingWithSuffixes.
	TranslationStrategy string `mapstructure:"translation_strategy"`
	// KeepScrapedNames leaves the names of scraped metrics as they were scraped. Default true.
	KeepScrapedNames bool `mapstructure:"keep_scraped_names"`
	// StrictLabels collapses underscores in label names and puts `key` before a leading one. Default false.
	StrictLabels bool `mapstructure:"strict_labels"`
	// LabelNameUnderscoreSanitization puts `key` before a single leading underscore of a label name, as Prometheus
	// does with OTLP by default. Default false.
	LabelNameUnderscoreSanitization bool `mapstructure:"label_name_underscore_sanitization"`
	// Namespace is put before each metric name. Default none.
	Namespace string `mapstructure:"namespace"`
	// ExternalLabels are added to series that have no label of that name. Default none.
	ExternalLabels map[string]string `mapstructure:"external_labels"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// LabelsConfig says which labels series have beside those of their points.
type LabelsConfig struct {
	// TargetInfo is the series with the attributes of a resource.
	TargetInfo TargetInfoConfig `mapstructure:"target_info"`
	// TypeAndUnitLabels adds __type__ and __unit__, as Prometheus does with its feature type-and-unit-labels. Default false.
	TypeAndUnitLabels bool `mapstructure:"type_and_unit_labels"`
	// ScopeLabels says which series have otel_scope_* labels: always, never, or auto: all but scraped ones.
	// Default auto.
	ScopeLabels string `mapstructure:"scope_labels"`
	// PromoteResourceAttributes are globs of resource attributes that become labels of each series,
	// ExcludeResourceAttributes exceptions from them. Default none.
	PromoteResourceAttributes []string `mapstructure:"promote_resource_attributes"`
	ExcludeResourceAttributes []string `mapstructure:"exclude_resource_attributes"`
	// ResourceAttributesWin lets a promoted attribute replace a point's own of the same name. Default false.
	ResourceAttributesWin bool `mapstructure:"resource_attributes_win"`
	// WriteRelabelConfigs are Prometheus's rules of that name, applied to each series last, in order. Default none.
	WriteRelabelConfigs []RelabelConfig `mapstructure:"write_relabel_configs"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// PointsConfig says what of points is sent, and as what.
type PointsConfig struct {
	// SendMetadata sends type, help and unit. Default true.
	SendMetadata bool `mapstructure:"send_metadata"`
	// Exemplars sends exemplars. Default true.
	Exemplars bool `mapstructure:"exemplars"`
	// StartTimestamps sends the start timestamps of counters and histograms, which only 2.0 can carry. Default true.
	StartTimestamps bool `mapstructure:"start_timestamps"`
	// ConvertExplicitHistogramsToNHCB sends histograms of explicit buckets as native histograms of custom buckets,
	// which only 2.0 can carry; KeepClassicHistograms sends the classic series too. Both default false.
	ConvertExplicitHistogramsToNHCB bool `mapstructure:"convert_explicit_histograms_to_nhcb"`
	KeepClassicHistograms           bool `mapstructure:"keep_classic_histograms"`
	// Delta is for delta sums and histograms.
	Delta DeltaConfig `mapstructure:"delta"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// TargetInfoConfig is the series target_info.
type TargetInfoConfig struct {
	// Enabled sends it. Default true.
	Enabled bool `mapstructure:"enabled"`
	// Interval is how often it is sent for each resource; 0 is with all of its data. Default 1m.
	Interval time.Duration `mapstructure:"interval"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// DeltaConfig is for delta points, which Prometheus does not have.
type DeltaConfig struct {
	// ToCumulative converts them to cumulative points; otherwise they are dropped and counted. Default false.
	ToCumulative bool `mapstructure:"to_cumulative"`
	// MaxSeries limits the sums kept. Points of further series are dropped and counted. Default 100000.
	MaxSeries int `mapstructure:"max_series"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func defaultClient() confighttp.ClientConfig {
	client := confighttp.NewDefaultClientConfig()
	// Each shard has one request at a time on its own connection; HTTP/2 would put them all on one.
	client.ForceAttemptHTTP2 = false
	return client
}

// NewDefaultConfig returns the default configuration.
func NewDefaultConfig() *Config {
	return &Config{
		HTTP:             defaultClient(),
		ShardByURL:       ShardByURLConfig{Replicas: 1},
		Timeout:          30 * time.Second,
		ProtobufMessage:  auto,
		Compression:      auto,
		CompressionLevel: 1,
		ReprobeInterval:  time.Hour,
		Batch:            BatchConfig{MaxSamples: 50_000, MaxBytes: 4 << 20, MaxRawBytes: 8 << 20},
		Queue:            QueueConfig{FSync: true, OnFull: onFullBlock, BlockTimeout: 15 * time.Second},
		Retry: RetryConfig{
			InitialInterval:     500 * time.Millisecond,
			RandomizationFactor: 0.5,
			Multiplier:          2,
			MaxInterval:         30 * time.Second,
			MaxRetryAfter:       5 * time.Minute,
			StatusCodes:         []int{401, 403, 404, 405, 407, 421},
		},
		Shards:          ShardsConfig{Min: 1, Max: 16},
		CircuitBreaker:  BreakerConfig{ConsecutiveFailures: 5, OpenFor: 10 * time.Second},
		Tenant:          TenantConfig{Max: 1000},
		Cache:           CacheConfig{MaxSeries: 1_000_000, IdleTimeout: 10 * time.Minute},
		ShutdownTimeout: 10 * time.Second,
		Names:           NamesConfig{TranslationStrategy: "UnderscoreEscapingWithSuffixes", KeepScrapedNames: true},
		Labels:          LabelsConfig{TargetInfo: TargetInfoConfig{Enabled: true, Interval: time.Minute}, ScopeLabels: auto},
		Points:          PointsConfig{SendMetadata: true, Exemplars: true, StartTimestamps: true, Delta: DeltaConfig{MaxSeries: 100_000}},
	}
}
