// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package remotewritereceiver is an HTTP server that receives Prometheus Remote
// Write, 1.0 and 2.0, and turns it into metrics.
//
// There are as many workers as the process has CPUs. A worker decodes a request
// and is free again before the pipeline is called, so the memory for decoding is
// limited by cores, not by senders. Bodies are limited as received and again as
// decoded.
//
// A worker's translator takes each series through its stages, which share the
// request that they work on:
//
//	recognition  finds the set of its labels, and its target
//	runFinder    if a known run of series begins with it, compares them with
//	             what comes, and takes their metrics as a whole
//	layout       otherwise finds or makes the metric for its points
//	tree         the metrics so far, in reused memory if possible
//
// Labels that senders repeat are checked, copied and made into attributes once,
// and shared from request to request; their memory is limited. If nothing behind
// the receiver keeps metrics, their memory is reused. No result depends on
// either: what is not known is made anew.
package remotewritereceiver
