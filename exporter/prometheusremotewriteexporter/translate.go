// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter

import (
	"time"

	"go.opentelemetry.io/collector/config/configretry"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter"
)

const (
	// maxTenants is the maximum number of combinations of `include_metadata_keys`, which contrib's exporter does not
	// limit.
	maxTenants = 10_000
	// maxQueueGrowth is the maximum factor by which a longer `queue_size` increases the bytes queued in memory.
	maxQueueGrowth = 16
)

// translate returns the equivalent configuration of the remotewrite exporter. Its defaults produce the same series as
// contrib's exporter.
func (c *Config) translate() *remotewriteexporter.Config {
	cfg := remotewriteexporter.NewDefaultConfig()
	cfg.HTTP = c.HTTP
	cfg.HTTP.Compression, cfg.Compression = "", snappy
	if c.HTTP.Compression != "" {
		cfg.Compression = string(c.HTTP.Compression)
	}
	if c.HTTP.Timeout > 0 {
		cfg.ShutdownTimeout = c.HTTP.Timeout
	}
	cfg.ProtobufMessage = c.ProtobufMessage
	if cfg.ProtobufMessage == "" {
		cfg.ProtobufMessage = messageV1
	}
	if cfg.ProtobufMessage == auto && c.HTTP.Compression == "" {
		cfg.Compression = auto
	}
	cfg.Retry.InitialInterval = c.Retry.InitialInterval
	cfg.Retry.RandomizationFactor = c.Retry.RandomizationFactor
	cfg.Retry.Multiplier = c.Retry.Multiplier
	cfg.Retry.MaxInterval = c.Retry.MaxInterval
	cfg.Retry.MaxElapsedTime = c.Retry.MaxElapsedTime
	cfg.Retry.StatusCodes = nil // contrib drops what is refused with any 4xx
	if !c.Retry.Enabled {
		retry := configretry.NewDefaultBackOffConfig()
		cfg.Retry.InitialInterval, cfg.Retry.MaxInterval = time.Millisecond, retry.MaxInterval
		cfg.Retry.Multiplier = retry.Multiplier
		cfg.Retry.MaxElapsedTime = time.Nanosecond // shorter than the time to a second attempt
	}
	cfg.Queue.OnFull = "drop_newest"
	switch {
	case c.WAL.HasValue():
		cfg.Queue.Directory, cfg.Queue.Size = c.WAL.Get().Directory, walSize
	case !c.Queue.Enabled:
		cfg.Queue.OnFull, cfg.Queue.WaitForResult = "block", true
	default:
		cfg.Queue.MaxBatches = int64(c.Queue.QueueSize)
		if more := float64(c.Queue.QueueSize) / defaultQueueSize; more > 1 {
			cfg.Queue.Size = int64(float64(remotewriteexporter.DefaultQueueSize()) * min(more, maxQueueGrowth))
		}
	}
	cfg.Batch.MaxRawBytes = defaultMaxBatch
	if c.MaxBatchSizeBytes > 0 {
		cfg.Batch.MaxRawBytes = c.MaxBatchSizeBytes
	}
	cfg.Batch.MaxBytes = cfg.Batch.MaxRawBytes // contrib has no limit after compression
	cfg.Shards.Max = c.parallelism()
	cfg.Tenant.MetadataKeys = c.IncludeMetadataKeys
	cfg.Tenant.Max = maxTenants

	cfg.Names.Namespace = c.Namespace
	cfg.Names.ExternalLabels = c.ExternalLabels
	cfg.Labels.WriteRelabelConfigs = c.WriteRelabelConfigs
	if c.ResourceToTelemetry.Enabled {
		cfg.Labels.PromoteResourceAttributes = []string{"*"}
		cfg.Labels.ResourceAttributesWin = true
		if c.ResourceToTelemetry.ExcludeServiceAttributes {
			cfg.Labels.ExcludeResourceAttributes = serviceAttributes
		}
	}
	cfg.Labels.TargetInfo.Enabled = c.TargetInfo.Enabled
	cfg.Labels.ScopeLabels = "always"
	if c.DisableScopeInfo {
		cfg.Labels.ScopeLabels = "never"
	}
	cfg.Names.KeepScrapedNames = false
	cfg.Names.StrictLabels = true
	if c.TranslationStrategy != "" {
		cfg.Names.TranslationStrategy = c.TranslationStrategy
	} else if !c.AddMetricSuffixes {
		cfg.Names.TranslationStrategy = "UnderscoreEscapingWithoutSuffixes"
	}
	cfg.Points.SendMetadata = c.SendMetadata || !c.speaksV1()
	cfg.Points.ConvertExplicitHistogramsToNHCB = c.ConvertExplicitHistogramsToNHCB && !c.speaksV1()
	cfg.Points.KeepClassicHistograms = c.KeepClassicHistograms
	return cfg
}

// keys are the keys that errors name. With `wal`, and if callers wait for the result, the queue has a limit without a
// key.
func (c *Config) keys() remotewriteexporter.Keys {
	if c.WAL.HasValue() || !c.Queue.Enabled {
		return remotewriteexporter.Keys{}
	}
	return remotewriteexporter.Keys{QueueSize: "remote_write_queue.queue_size"}
}

// parallelism returns the maximum number of requests at a time.
func (c *Config) parallelism() int {
	n := c.Queue.NumConsumers
	if p := c.MaxBatchRequestParallelism; p != nil {
		n = *p
	}
	return min(max(n, 1), remotewriteexporter.MaxShards)
}

func (c *Config) speaksV1() bool {
	return c.ProtobufMessage == "" || c.ProtobufMessage == messageV1 || c.ProtobufMessage == "1.0"
}

// warnings returns what happens instead of what some keys request.
func (c *Config) warnings() []string {
	var list []string
	if wal := c.WAL.Get(); wal != nil && *wal != (WALConfig{Directory: wal.Directory}) {
		list = append(list, "`wal` keeps the queue in a folder of `wal.directory`: its other keys have no effect")
	}
	if c.ConvertExplicitHistogramsToNHCB && c.speaksV1() {
		list = append(list, "`convert_explicit_histograms_to_nhcb` is ignored with "+messageV1+", which has no custom buckets: "+
			"classic histograms are sent; choose `protobuf_message: "+messageV2+"`")
	}
	if !c.AddMetricSuffixes {
		list = append(list, "`add_metric_suffixes` is deprecated: use `translation_strategy: UnderscoreEscapingWithoutSuffixes`")
	}
	return list
}
