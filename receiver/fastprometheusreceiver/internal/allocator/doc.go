// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package allocator is the client of a target allocator, the service by which the OpenTelemetry operator divides
// targets among collectors.
//
// The allocator says which jobs there are; the targets of each come from it by Prometheus's own http_sd. A Client asks
// for the jobs at an interval and hands them on when they change. It never hands on part of an answer: one that cannot be
// read, or is larger than a 32nd of the memory, leaves everything as it was.
package allocator
