// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package prometheusreceiver is the fastprometheus receiver under the type prometheus, so that it can stand in for the
// Collector's receiver of that type: the configuration stays as it is.
package prometheusreceiver
