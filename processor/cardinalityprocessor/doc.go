// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package cardinalityprocessor is a gate for metric series: it limits how many
// there are, and never to the cost of those that were there first.
//
// A series is decided about when it is first seen and keeps its place until it
// has been idle. Known series pass without a lock and without an allocation;
// each costs 14 to 17 bytes. All that is remembered is bounded by the
// configuration. Data is changed in place, and not at all in a dry run.
package cardinalityprocessor
