// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package godwit is the root of a repository of OpenTelemetry Collector
// components and of the distributions assembled from them.
//
// There is no code here. Each component is a module of its own, so that it can
// be adopted alone: see receiver, processor, exporter and extension.
package godwit
