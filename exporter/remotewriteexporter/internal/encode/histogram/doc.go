// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package histogram converts OTLP histograms to native histograms of Prometheus.
//
// A filled histogram uses its memory again, and keeps nothing of its source.
package histogram
