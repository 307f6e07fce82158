// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package selftelemetry reads the page on which a Collector serves its own
// metrics, and finds that page from the Collector's configuration.
//
// A Snapshot is one reading of the page. It owns its memory, does not change,
// and may be shared. Metrics are looked up by the names that components declare,
// whatever suffixes the page was configured to add.
//
// One reading takes at most 5 s and 16 MiB, and leaves no connection open.
package selftelemetry
