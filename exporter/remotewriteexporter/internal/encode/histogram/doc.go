// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package histogram turns what OTLP's histograms count into native ones of Prometheus.
//
// What is filled keeps the memory that it had, and nothing of what it was filled from.
package histogram
