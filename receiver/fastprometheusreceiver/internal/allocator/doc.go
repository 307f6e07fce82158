// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package allocator is the client of a target allocator, the service by which the OpenTelemetry operator divides
// targets among collectors.
//
// The allocator lists the jobs; the targets of each are fetched with Prometheus's http_sd. A Client asks
// for the jobs at an interval and passes them on when they change. It never passes on part of an answer: one that cannot be
// read, or is larger than a 32nd of the memory, changes nothing.
package allocator
