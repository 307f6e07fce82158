// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package pulseextension says in the log where to look and what is flowing.
//
// It reads the Collector's own metrics page over HTTP and compares it with the
// reading before: one line as soon as something moves, then one per interval.
// Between two readings it holds one timer, one goroutine and the last reading.
package pulseextension
