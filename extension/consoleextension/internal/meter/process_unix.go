// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package meter

import (
	"syscall"
	"time"
)

// CPUSeconds returns the CPU time of the process, -1 if it is not known.
func CPUSeconds() float64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return -1
	}
	return (time.Duration(use.Utime.Nano()) + time.Duration(use.Stime.Nano())).Seconds()
}
