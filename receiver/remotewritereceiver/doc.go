// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package remotewritereceiver is an HTTP server that takes Prometheus Remote
// Write, 1.0 and 2.0, and turns it into metrics.
//
// A request is decoded by one of as many
// workers as the process has CPUs, so that the memory decoding needs is bounded
// by cores, not by senders; the worker is free again before the pipeline is
// called. Bodies are limited as received and again as decoded.
//
// What senders say again and again is known: labels are checked, copied and made
// into attributes once, within a bound, and shared from request to request. Where
// nothing behind the receiver keeps metrics, their memory is used
// again. Nothing depends on either: what is not known is made anew.
package remotewritereceiver
