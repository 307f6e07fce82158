// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package interop has the tests of the otlpstream exporter that need a receiver: ours, the Collector's, and programs
// that know nothing but the specification. They are a module of their own so that the exporter depends on none.
package interop
