// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheusremotewriteexporter

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/config/configretry"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter"
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
	cfg.Batch.MaxRawBytes = defaultMaxBatch
	if c.MaxBatchSizeBytes > 0 {
		cfg.Batch.MaxRawBytes = c.MaxBatchSizeBytes
	}
	cfg.Batch.MaxBytes = cfg.Batch.MaxRawBytes // contrib does not know a limit after compression
	cfg.Shards.Max = c.parallelism()
	if len(c.IncludeMetadataKeys) > 0 {
		cfg.Tenant.Header, cfg.Tenant.FromMetadata = c.IncludeMetadataKeys[0], c.IncludeMetadataKeys[0]
	}

	cfg.Namespace = c.Namespace
	cfg.ExternalLabels = c.ExternalLabels
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
	ours := remotewriteexporter.NewDefaultConfig()
	if c.WAL.HasValue() {
		list = append(list, "`wal` is ignored: the queue is in memory and does not survive the process; "+
			"for one on disk use the remotewrite exporter with `queue.storage`")
	}
	if !c.Queue.Enabled {
		list = append(list, "`remote_write_queue.enabled: false` is ignored: requests are always queued; the remotewrite "+
			"exporter with `queue.storage` acknowledges data once it is stored")
	}
	if c.Queue.Enabled && c.Queue.QueueSize != defaultQueueSize {
		list = append(list, fmt.Sprintf("`remote_write_queue.queue_size` is ignored: the queue holds %d bytes of compressed requests "+
			"whatever their number; the remotewrite exporter has `queue.size`", ours.Queue.Size))
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
