// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package size limits the size of requests.
//
// Receivers limit the size of a request, which is known only after compression. So Limits learn how well each format compresses, and
// which sizes receivers refuse. They may be used from any goroutine.
package size

import (
	"math"
	"sync/atomic"

	"github.com/godwit-otel/godwit/exporter/remotewriteexporter/internal/block"
)

// Limits are the limits of requests. The size of a request is known only once it is compressed, so they learn how well
// each format compresses.
type Limits struct {
	samples, rawBytes, compressedBytes int // as configured

	compressed atomic.Int64        // the most compressed bytes that receivers accept
	ratio      [2][3]atomic.Uint64 // learned: compressed by raw bytes, by version and compression
}

// New makes limits that never exceed the given ones.
func New(samples, rawBytes, compressedBytes int) *Limits {
	l := &Limits{samples: samples, rawBytes: rawBytes, compressedBytes: compressedBytes}
	l.compressed.Store(int64(compressedBytes))
	return l
}

// LimitCompressed learns from a 413 how large a request receivers accept.
func (l *Limits) LimitCompressed(n int) {
	l.compressed.Store(int64(max(1, min(n, l.compressedBytes))))
}

// PerRequest divides samples evenly into requests: it returns how many go into each.
func (l *Limits) PerRequest(samples int) int {
	requests := (samples + l.samples - 1) / l.samples
	return (samples + requests - 1) / requests
}

// Raw is about how many bytes a request of a format may have before compression.
func (l *Limits) Raw(f block.Format) int {
	limit := l.rawBytes
	if ratio := math.Float64frombits(l.ratio[f.Version-1][f.Compression].Load()); ratio > 0 {
		limit = min(limit, int(0.9*float64(l.compressed.Load())/ratio))
	}
	return max(limit, 1024)
}

// Learn learns how well a format compresses, so that the next requests are cut at the right size. Small requests
// compress worse, which says nothing about those close to the limit.
func (l *Limits) Learn(f block.Format, raw, rawLimit, compressed int) {
	if compressed < int(l.compressed.Load())/4 && raw < rawLimit/2 {
		return
	}
	p := &l.ratio[f.Version-1][f.Compression]
	now := float64(compressed) / float64(raw)
	if was := math.Float64frombits(p.Load()); was > 0 {
		now = max(now, was-(was-now)/16) // quick to grow, slow to shrink: splitting a block that is too large costs much more
	}
	p.Store(math.Float64bits(now))
}

// Fit appends a block to dst, split if it is too large after compression.
func (l *Limits) Fit(b block.Block, dst []block.Block) []block.Block {
	if len(b.Body()) > int(l.compressed.Load()) {
		if first, second, err := block.Split(b); err == nil {
			return l.Fit(second, l.Fit(first, dst))
		}
	}
	return append(dst, b)
}

// Fullness is how full a request is, by the limit that it comes closest to.
func (l *Limits) Fullness(b block.Block) float64 {
	return max(
		float64(b.Samples+b.Histograms)/float64(l.samples),
		float64(b.RawSize)/float64(l.rawBytes),
		float64(len(b.Body()))/float64(l.compressed.Load()),
	)
}
