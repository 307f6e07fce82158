// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"github.com/godwit-otel/godwit/internal/memlimit"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode"
	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/encode/cache"
)

// Shares of the memory, where the configured limits, which count series and samples, would allow more.
var (
	// cacheShare is for what the encoder remembers of series, whose labels may be long.
	cacheShare = memlimit.Share{Part: 4, Least: 4 << 20, Most: 1 << 40}
	// rawShare is for a request before compression. Writing one takes several times as much.
	rawShare = memlimit.Share{Part: 32, Least: 1 << 20, Most: 1 << 40}
	// roundShare is for the samples of a round, and for the texts of its new series.
	roundShare = memlimit.Share{Part: 16, Least: 1 << 20, Most: 1 << 40}
)

const (
	// maxRequests limits a round, in full requests, for any number of shards.
	maxRequests = 16
	// sampleSize is about what a sample of a round takes.
	sampleSize = 48
	// deltaSize is about what a series takes for which a sum is kept.
	deltaSize = 256
)

// bound limits an encoder to its shares of the memory.
func bound(cfg *encode.Config, memory int64) {
	cfg.Cache.MaxBytes = cacheShare.Of(memory)
	if cfg.Cache.Delta == cache.DeltaCumulative { // their series stay whether or not there is room
		cfg.Cache.MaxBytes += min(cfg.Cache.MaxBytes, int64(cfg.MaxDelta)*deltaSize)
	}
	cfg.Cache.MaxGrowth = roundShare.Of(memory)
	cfg.MaxRawBytes = int(min(int64(cfg.MaxRawBytes), rawShare.Of(memory)))
}

// requestsFor is the most requests of a round.
func requestsFor(memory int64, maxSamples int) int {
	return int(min(max(roundShare.Of(memory)/int64(maxSamples*sampleSize), 1), maxRequests))
}
