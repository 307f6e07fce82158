// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package handoff compares ways to hand items from many goroutines to one that writes them: a channel, a queue with a
// mutex, exporterhelper's queue, and a ring of preallocated slots that wakes its consumer in batches.
//
// For each number of producers it measures the items per second when all go as fast as they can, and the consumer's CPU
// time when items come at a steady rate.
package handoff
