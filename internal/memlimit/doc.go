// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package memlimit says how much memory the process may use, so that limits that nobody has set can follow it.
//
// What counts is what the process would feel first: the limits of its cgroup and of those around it, GOMEMLIMIT as it
// was when the process began, and the memory of the host.
package memlimit
