// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package consoleextension

import (
	"syscall"
	"time"
)

// cpuSeconds is the CPU time that the process has used.
func cpuSeconds() float64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return -1
	}
	return (time.Duration(use.Utime.Nano()) + time.Duration(use.Stime.Nano())).Seconds()
}
