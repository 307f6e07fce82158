// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package runtimeprofileextension

import (
	"syscall"
	"time"
)

// usedSeconds is the CPU time that the process has used by now. It returns false where the system does not say.
func usedSeconds() (float64, bool) {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0, false
	}
	return (time.Duration(use.Utime.Nano()) + time.Duration(use.Stime.Nano())).Seconds(), true
}
