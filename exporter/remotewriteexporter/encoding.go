// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"hash/fnv"
	"strconv"

	"github.com/prometheus/otlptranslator"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/names"
)

// encoding is the part of the configuration that says how points become series.
func (c *Config) encoding(shards int) encode.Config {
	rules, _ := relabelling(c.WriteRelabelConfigs, c.scheme(), "") // which Validate has checked
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
		ScopeLabels:               map[string]encode.ScopeLabels{auto: encode.ScopeLabelsAuto, always: encode.ScopeLabelsOn, never: encode.ScopeLabelsOff}[c.ScopeLabels],
		PromoteResourceAttributes: c.PromoteResourceAttributes,
		ExcludeResourceAttributes: c.ExcludeResourceAttributes,
		ResourceWins:              c.ResourceAttributesWin,
		Rules:                     rules,
		TargetInfo:                c.TargetInfo.Enabled,
		TargetInfoInterval:        c.TargetInfo.Interval,
		Metadata:                  c.SendMetadata,
		MetadataInterval:          encode.DefaultConfig().MetadataInterval,
		Exemplars:                 c.Exemplars,
		StartTimestamps:           c.StartTimestamps,
		CustomBuckets:             c.ConvertExplicitHistogramsToNHCB,
		KeepClassic:               c.KeepClassicHistograms,
		MaxDelta:                  c.Delta.MaxSeries,
		Shards:                    shards,
		MaxSeries:                 c.Cache.MaxSeries,
		MaxTenants:                c.Tenant.Max,
		CheckTenant:               naming{&c.Tenant}.check,
		IdleGenerations:           cacheGenerations,
		MaxSamples:                c.Batch.MaxSamples,
		MaxRawBytes:               c.Batch.MaxRawBytes,
		MaxCompressedBytes:        c.Batch.MaxBytes,
	}
	if c.Delta.ToCumulative {
		cfg.Delta = encode.DeltaCumulative
	}
	return cfg
}

// identities name the destinations in the queue, the same after a restart whatever their order.
func identities(clients []namedClient) []string {
	var list []string
	seen := map[string]int{}
	for i := range clients {
		h := fnv.New64a()
		_, _ = h.Write([]byte(clients[i].client.Endpoint))
		id := strconv.FormatUint(h.Sum64(), 36)
		seen[id]++
		if n := seen[id]; n > 1 { // one endpoint twice, with other headers
			id += "-" + strconv.Itoa(n)
		}
		list = append(list, id)
	}
	return list
}
