// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package runtimeprofileextension

import (
	"syscall"
	"time"
)

// usedSeconds returns the CPU time that the process has used. It returns false if the system does not report it.
func usedSeconds() (float64, bool) {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0, false
	}
	return (time.Duration(use.Utime.Nano()) + time.Duration(use.Stime.Nano())).Seconds(), true
}
