// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package racetest

// Enabled reports whether the race detector is built in.
const Enabled = true
