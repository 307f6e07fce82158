// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package runtimeprofileextension sets the Go runtime's two knobs, GOGC and
// GOMEMLIMIT, from the memory the process may use.
//
// The knobs are global, so one instance at a time holds them and gives them
// back on Shutdown. A knob set in the environment is never touched. The package
// reads a handful of small files once per refresh interval and keeps nothing.
package runtimeprofileextension
