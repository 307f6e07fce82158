// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package consoleextension serves a web page that shows what the Collector does, and the same as JSON.
//
// Components that have something to show register when they start, see internal/inspect; the console asks them when
// somebody looks. What it keeps itself is limited: two readings of counters, and one hour of a dozen numbers. It
// changes nothing, and shows no secrets.
package consoleextension
