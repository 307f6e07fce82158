// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package interop has the tests of the otlpstream exporter that need a receiver: ours, the Collector's, and programs
// that know only the specification. They are in a separate module so that the exporter depends on none.
package interop
