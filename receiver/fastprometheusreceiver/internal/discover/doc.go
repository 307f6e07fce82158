// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package discover finds the targets of scrape configurations.
//
// Discovery and relabelling are Prometheus's own; which mechanisms are linked is the choice of the binary's build tags
// (remove_all_sd, enable_*_sd). A Source runs the mechanisms and publishes groups. A Deriver turns the groups of one job
// into targets; it works only on groups that it has not seen. A Shard says which of them are this member's.
//
// A Target is immutable. It refers to the label sets that discovery holds anyway, and builds what only people ask for,
// its labels before relabelling, on demand.
package discover
