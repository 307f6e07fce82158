// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter

import (
	"time"

	"go.opentelemetry.io/collector/config/configretry"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter"
)

const (
	// maxTenants is how many values of `include_metadata_keys` there may be at a time, where contrib's exporter has no bound.
	maxTenants = 10_000
	// maxQueueGrowth is how many times the bytes of the default may be queued in memory for a longer `queue_size`.
	maxQueueGrowth = 16
)

// translate makes the configuration of the remotewrite exporter. Defaults are chosen so that the same series come out as
// do of contrib's.
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
	cfg.Retry.StatusCodes = nil // contrib drops what any 4xx refuses
	if !c.Retry.Enabled {
		retry := configretry.NewDefaultBackOffConfig()
		cfg.Retry.InitialInterval, cfg.Retry.MaxInterval = time.Millisecond, retry.MaxInterval
		cfg.Retry.Multiplier = retry.Multiplier
		cfg.Retry.MaxElapsedTime = time.Nanosecond // it has passed before the second attempt
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
			cfg.Queue.Size = int64(float64(cfg.Queue.Size) * min(more, maxQueueGrowth))
		}
	}
	cfg.Batch.MaxRawBytes = defaultMaxBatch
	if c.MaxBatchSizeBytes > 0 {
		cfg.Batch.MaxRawBytes = c.MaxBatchSizeBytes
	}
	cfg.Batch.MaxBytes = cfg.Batch.MaxRawBytes // contrib does not know a limit after compression
	cfg.Shards.Max = c.parallelism()
	cfg.Tenant.MetadataKeys = c.IncludeMetadataKeys
	cfg.Tenant.Max = maxTenants

	cfg.Namespace = c.Namespace
	cfg.ExternalLabels = c.ExternalLabels
	cfg.WriteRelabelConfigs = c.WriteRelabelConfigs
	if c.ResourceToTelemetry.Enabled {
		cfg.PromoteResourceAttributes = []string{"*"}
		cfg.ResourceAttributesWin = true
		if c.ResourceToTelemetry.ExcludeServiceAttributes {
			cfg.ExcludeResourceAttributes = serviceAttributes
		}
	}
	cfg.TargetInfo.Enabled = c.TargetInfo.Enabled
	cfg.ScopeLabels = "always"
	if c.DisableScopeInfo {
		cfg.ScopeLabels = "never"
	}
	cfg.KeepScrapedNames = false
	cfg.StrictLabels = true
	if c.TranslationStrategy != "" {
		cfg.TranslationStrategy = c.TranslationStrategy
	} else if !c.AddMetricSuffixes {
		cfg.TranslationStrategy = "UnderscoreEscapingWithoutSuffixes"
	}
	cfg.SendMetadata = c.SendMetadata || !c.speaksV1()
	cfg.ConvertExplicitHistogramsToNHCB = c.ConvertExplicitHistogramsToNHCB && !c.speaksV1()
	cfg.KeepClassicHistograms = c.KeepClassicHistograms
	return cfg
}

// keys are those that errors name. The queue of a `wal`, and of those who wait for the result, has a bound without a key.
func (c *Config) keys() remotewriteexporter.Keys {
	if c.WAL.HasValue() || !c.Queue.Enabled {
		return remotewriteexporter.Keys{}
	}
	return remotewriteexporter.Keys{QueueSize: "remote_write_queue.queue_size"}
}

// parallelism is the most requests at a time.
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

// warnings say what happens in place of what some keys ask for.
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
