// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package schedule runs tasks at regular times.
//
// A Clock keeps its tasks in a heap under one timer. A task has a goroutine only while it runs, so waiting tasks need
// neither goroutines nor timers. Time is the monotonic clock's: setting the wall clock neither hurries nor
// delays a task, it only changes the timestamps that runs are given.
package schedule
