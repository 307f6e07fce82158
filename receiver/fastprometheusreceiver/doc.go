// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package fastprometheusreceiver scrapes Prometheus targets at a fraction of the usual cost.
//
// It takes the configuration of the Collector's prometheus receiver and produces the same metrics.
package fastprometheusreceiver
