// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package remotewriteexporter sends metrics by Prometheus Remote Write, 2.0 or
// 1.0, with zstd or snappy, whichever is the best that a destination takes.
//
// Metrics become finished request bodies before they are queued. From there on
// blocks of bytes are stored, shared between destinations, sent and sent again;
// nothing behind the encoder looks into them. A series always travels in the
// same shard and a shard has one request on the way at a time, so the samples
// of a series arrive in order. All that waits is bounded in bytes.
package remotewriteexporter
