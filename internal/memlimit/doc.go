// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package memlimit says how much memory the process may use, and how much of it data may take, from which limits that
// nobody has set are derived.
//
// The tightest of these counts: the limits of its cgroup and of those around it, GOMEMLIMIT as it
// was when the process began, and the memory of the host.
package memlimit
