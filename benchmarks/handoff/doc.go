// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package handoff compares ways to hand items from many goroutines to one that
// writes them out: a channel, a queue under a mutex, exporterhelper's queue,
// and a ring of preallocated slots whose wake-ups are batched.
//
// Two things are measured at each number of producers: how many items pass per
// second when all go as fast as they can, and what CPU time the consumer takes
// when they come at a steady rate.
package handoff
