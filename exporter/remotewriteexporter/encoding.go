// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"hash/fnv"
	"strconv"

	"github.com/prometheus/otlptranslator"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// encoding is the part of the configuration for the encoder.
func (c *Config) encoding(shards int) encode.Config {
	rules, _ := relabelling(c.WriteRelabelConfigs, c.scheme(), "") // checked by Validate
	cfg := encode.Config{
		Names: names.Config{
			Strategy:          otlptranslator.TranslationStrategyOption(c.TranslationStrategy),
			StrictLabels:      c.StrictLabels,
			KeyedLabels:       c.LabelNameUnderscoreSanitization,
			ScrapedNames:      c.KeepScrapedNames,
			Namespace:         c.Namespace,
			ExternalLabels:    c.ExternalLabels,
			TypeAndUnitLabels: c.TypeAndUnitLabels,
		},
		Cache: cache.Config{
			ScopeLabels:               map[string]cache.ScopeLabels{auto: cache.ScopeLabelsAuto, always: cache.ScopeLabelsOn, never: cache.ScopeLabelsOff}[c.ScopeLabels],
			PromoteResourceAttributes: c.PromoteResourceAttributes,
			ExcludeResourceAttributes: c.ExcludeResourceAttributes,
			ResourceWins:              c.ResourceAttributesWin,
			TargetInfo:                c.TargetInfo.Enabled,
			Metadata:                  c.SendMetadata,
			CustomBuckets:             c.ConvertExplicitHistogramsToNHCB,
			KeepClassic:               c.KeepClassicHistograms,
			MaxSeries:                 c.Cache.MaxSeries,
			IdleGenerations:           cacheGenerations,
		},
		Rules:              rules,
		TargetInfoInterval: c.TargetInfo.Interval,
		MetadataInterval:   encode.DefaultConfig().MetadataInterval,
		Exemplars:          c.Exemplars,
		StartTimestamps:    c.StartTimestamps,
		MaxDelta:           c.Delta.MaxSeries,
		Shards:             shards,
		MaxTenants:         c.Tenant.Max,
		CheckTenant:        naming{&c.Tenant}.check,
		MaxSamples:         c.Batch.MaxSamples,
		MaxRawBytes:        c.Batch.MaxRawBytes,
		MaxCompressedBytes: c.Batch.MaxBytes,
	}
	if c.Delta.ToCumulative {
		cfg.Cache.Delta = cache.DeltaCumulative
	}
	return cfg
}

// identities are the names of the destinations in the queue, the same after a restart whatever their order.
func identities(clients []namedClient) []string {
	var list []string
	for i := range clients {
		h := fnv.New64a()
		_, _ = h.Write([]byte(clients[i].client.Endpoint))
		list = append(list, strconv.FormatUint(h.Sum64(), 36))
	}
	return list
}
