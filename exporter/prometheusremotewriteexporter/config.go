// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter"
	"github.com/godwit-otel/godwit/internal/confkeys"
	"github.com/godwit-otel/godwit/internal/gates"
)

// Config has the keys of contrib's exporter at 0.159.
type Config struct {
	// Client is the client with its keys at the top, HTTP the same in a block of its own, which wins.
	Client confighttp.ClientConfig `mapstructure:",squash"`
	HTTP   confighttp.ClientConfig `mapstructure:"http"`
	// Retry says when failed requests are repeated.
	Retry configretry.BackOffConfig `mapstructure:"retry_on_failure"`
	// Queue is the queue.
	Queue QueueConfig `mapstructure:"remote_write_queue"`
	// WAL keeps the queue on disk, in place of contrib's write-ahead log.
	WAL configoptional.Optional[WALConfig] `mapstructure:"wal"`
	// MaxBatchSizeBytes is the most bytes of a request before compression. Default 3000000.
	MaxBatchSizeBytes int `mapstructure:"max_batch_size_bytes"`
	// MaxBatchRequestParallelism is the most requests at a time. Default num_consumers of the queue.
	MaxBatchRequestParallelism *int `mapstructure:"max_batch_request_parallelism"`
	// ProtobufMessage is prometheus.WriteRequest, io.prometheus.write.v2.Request, or auto, which contrib does not know.
	ProtobufMessage string `mapstructure:"protobuf_message"`
	// IncludeMetadataKeys are the keys of client metadata that become headers.
	IncludeMetadataKeys []string `mapstructure:"include_metadata_keys"`

	// What follows says how points become series.
	Namespace                       string              `mapstructure:"namespace"`
	ExternalLabels                  map[string]string   `mapstructure:"external_labels"`
	ResourceToTelemetry             ResourceToTelemetry `mapstructure:"resource_to_telemetry_conversion"`
	TargetInfo                      TargetInfoConfig    `mapstructure:"target_info"`
	DisableScopeInfo                bool                `mapstructure:"disable_scope_info"`
	AddMetricSuffixes               bool                `mapstructure:"add_metric_suffixes"`
	TranslationStrategy             string              `mapstructure:"translation_strategy"`
	SendMetadata                    bool                `mapstructure:"send_metadata"`
	ConvertExplicitHistogramsToNHCB bool                `mapstructure:"convert_explicit_histograms_to_nhcb"`
	KeepClassicHistograms           bool                `mapstructure:"keep_classic_histograms"`
	// WriteRelabelConfigs are Prometheus' rules of that name, which contrib does not have.
	WriteRelabelConfigs []remotewriteexporter.RelabelConfig `mapstructure:"write_relabel_configs"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// QueueConfig is contrib's queue, which counts batches of metrics.
type QueueConfig struct {
	Enabled      bool `mapstructure:"enabled"`
	QueueSize    int  `mapstructure:"queue_size"`
	NumConsumers int  `mapstructure:"num_consumers"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// WALConfig is contrib's write-ahead log, of which the directory is used.
type WALConfig struct {
	// Directory is where the queue is kept.
	Directory          string        `mapstructure:"directory"`
	BufferSize         int           `mapstructure:"buffer_size"`
	TruncateFrequency  time.Duration `mapstructure:"truncate_frequency"`
	LagRecordFrequency time.Duration `mapstructure:"lag_record_frequency"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// ResourceToTelemetry turns resource attributes into labels.
type ResourceToTelemetry struct {
	Enabled                  bool `mapstructure:"enabled"`
	ExcludeServiceAttributes bool `mapstructure:"exclude_service_attributes"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// TargetInfoConfig is the series target_info.
type TargetInfoConfig struct {
	Enabled bool `mapstructure:"enabled"`

	// prevent unkeyed literal initialization
	_ struct{}
}

const (
	defaultQueueSize    = 10_000
	defaultNumConsumers = 5
	defaultMaxBatch     = 3_000_000
	defaultTimeout      = 5 * time.Second

	messageV1 = "prometheus.WriteRequest"
	messageV2 = "io.prometheus.write.v2.Request"
	auto      = "auto"
	snappy    = "snappy"
)

// serviceAttributes identify a service; they are the labels job and instance already.
var serviceAttributes = []string{"service.name", "service.namespace", "service.instance.id"}

// reserved are headers of the protocol.
var reserved = []string{"Content-Encoding", "Content-Type", "User-Agent", "X-Prometheus-Remote-Write-Version"}

func createDefaultConfig() component.Config {
	retry := configretry.NewDefaultBackOffConfig()
	retry.InitialInterval = 50 * time.Millisecond
	return &Config{
		Client:            defaultClient(),
		HTTP:              defaultClient(),
		Retry:             retry,
		Queue:             QueueConfig{Enabled: true, QueueSize: defaultQueueSize, NumConsumers: defaultNumConsumers},
		MaxBatchSizeBytes: defaultMaxBatch,
		ProtobufMessage:   messageV1,
		ExternalLabels:    map[string]string{},
		TargetInfo:        TargetInfoConfig{Enabled: true},
		AddMetricSuffixes: true,
	}
}

func defaultClient() confighttp.ClientConfig {
	client := confighttp.NewDefaultClientConfig()
	client.ForceAttemptHTTP2 = false // one connection for each request at a time
	client.Timeout = defaultTimeout
	return client
}

// ownKeys are the top-level keys that do not belong to the client.
var ownKeys = func() map[string]bool {
	keys := map[string]bool{}
	for i := range reflect.TypeFor[Config]().NumField() {
		field := reflect.TypeFor[Config]().Field(i)
		if name, _, _ := strings.Cut(field.Tag.Get("mapstructure"), ","); name != "" {
			keys[name] = true
		}
	}
	return keys
}()

// Unmarshal decodes the configuration. The block `http` takes precedence over the keys at the top.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := confkeys.Unmarshal(conf, c); err != nil {
		return err
	}
	if gates.Enabled(gateRemoveTopLevel) {
		for key := range conf.ToStringMap() {
			if !ownKeys[key] { // known, so it belongs to the client
				return fmt.Errorf("`%s` must be under `http`: the feature gate %s is enabled", key, gateRemoveTopLevel)
			}
		}
	}
	if !conf.IsSet("http") {
		c.HTTP = c.Client
	}
	c.Client = confighttp.ClientConfig{}
	return nil
}

// Validate reports all faults of the configuration.
func (c *Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch c.HTTP.Compression {
	case "", snappy, "zstd":
	default:
		fault("`compression` must be snappy or zstd, got %q", c.HTTP.Compression)
	}
	if c.MaxBatchSizeBytes < 0 {
		fault("`max_batch_size_bytes` must not be negative, got %d", c.MaxBatchSizeBytes)
	}
	if p := c.MaxBatchRequestParallelism; p != nil && *p < 1 {
		fault("`max_batch_request_parallelism` must be positive, got %d", *p)
	}
	if c.Queue.NumConsumers < 0 {
		fault("`remote_write_queue.num_consumers` must not be negative, got %d", c.Queue.NumConsumers)
	}
	if c.Queue.QueueSize < 0 || c.Queue.Enabled && c.Queue.QueueSize == 0 {
		fault("`remote_write_queue.queue_size` must be positive, got %d", c.Queue.QueueSize)
	}
	if c.WAL.HasValue() && c.WAL.Get().Directory == "" {
		fault("`wal.directory` must be set: the queue is kept there")
	}
	for _, key := range c.IncludeMetadataKeys {
		if slices.ContainsFunc(reserved, func(header string) bool { return strings.EqualFold(header, key) }) {
			fault("`include_metadata_keys` must not have %q: the protocol says what that header is", key)
		}
	}
	if len(errs) == 0 { // the remaining keys have the same names there
		errs = append(errs, c.translate().Validate())
	}
	return errors.Join(errs...)
}
