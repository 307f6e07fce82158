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
	rules, _ := relabelling(c.Labels.WriteRelabelConfigs, c.Names.scheme(), "") // checked by Validate
	cfg := encode.Config{
		Names: names.Config{
			Strategy:          otlptranslator.TranslationStrategyOption(c.Names.TranslationStrategy),
			StrictLabels:      c.Names.StrictLabels,
			KeyedLabels:       c.Names.LabelNameUnderscoreSanitization,
			ScrapedNames:      c.Names.KeepScrapedNames,
			Namespace:         c.Names.Namespace,
			ExternalLabels:    c.Names.ExternalLabels,
			TypeAndUnitLabels: c.Labels.TypeAndUnitLabels,
		},
		Cache: cache.Config{
			ScopeLabels:               map[string]cache.ScopeLabels{auto: cache.ScopeLabelsAuto, always: cache.ScopeLabelsOn, never: cache.ScopeLabelsOff}[c.Labels.ScopeLabels],
			PromoteResourceAttributes: c.Labels.PromoteResourceAttributes,
			ExcludeResourceAttributes: c.Labels.ExcludeResourceAttributes,
			ResourceWins:              c.Labels.ResourceAttributesWin,
			TargetInfo:                c.Labels.TargetInfo.Enabled,
			Metadata:                  c.Points.SendMetadata,
			CustomBuckets:             c.Points.ConvertExplicitHistogramsToNHCB,
			KeepClassic:               c.Points.KeepClassicHistograms,
			MaxSeries:                 c.Cache.MaxSeries,
			IdleGenerations:           cacheGenerations,
		},
		Rules:              rules,
		TargetInfoInterval: c.Labels.TargetInfo.Interval,
		MetadataInterval:   encode.DefaultConfig().MetadataInterval,
		Exemplars:          c.Points.Exemplars,
		StartTimestamps:    c.Points.StartTimestamps,
		MaxDelta:           c.Points.Delta.MaxSeries,
		Shards:             shards,
		MaxTenants:         c.Tenant.Max,
		CheckTenant:        naming{&c.Tenant}.check,
		MaxSamples:         c.Batch.MaxSamples,
		MaxRawBytes:        c.Batch.MaxRawBytes,
		MaxCompressedBytes: c.Batch.MaxBytes,
	}
	if c.Points.Delta.ToCumulative {
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
