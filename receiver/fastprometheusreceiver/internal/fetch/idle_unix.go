// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package fetch

import (
	"errors"
	"syscall"
)

func (p *probe) once(fd uintptr) {
	_, err := syscall.Read(int(fd), p.room[:])
	p.found = !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
}
