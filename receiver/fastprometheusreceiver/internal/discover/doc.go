// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package discover finds the targets of scrape configurations.
//
// Discovery and relabelling are Prometheus's own; the binary's build tags decide which mechanisms are linked
// (remove_all_sd, enable_*_sd). A Source runs the mechanisms and publishes groups. A Deriver turns the groups of one job
// into targets, and processes only new groups. A Shard selects those of this member.
//
// A Target is immutable. It refers to label sets that discovery holds anyway, and builds its labels before relabelling,
// which only people ask for, on demand.
package discover
