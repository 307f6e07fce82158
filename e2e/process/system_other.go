// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"errors"
	"os"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return nil }

// Without process groups, only the process itself is killed.
func killGroup(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

func usageOf(int) (Usage, error) {
	return Usage{}, errors.New("cannot read the usage of a process: only Linux is supported")
}
