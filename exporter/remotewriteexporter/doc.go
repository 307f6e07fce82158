// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package remotewriteexporter sends metrics by Prometheus Remote Write, 2.0 or
// 1.0, with zstd or snappy: the best format that a destination accepts.
//
// Metrics become finished request bodies before they are queued. After that,
// blocks of bytes are stored, shared between destinations, sent and retried;
// nothing behind the encoder decodes them. A series always uses the
// same shard and a shard has one request in flight at a time, so the samples
// of a series arrive in order. Everything that waits is limited in bytes.
package remotewriteexporter
