// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package runtimeprofileextension

import "errors"

// An executable is the file of the process, which is not released on this platform.
type executable struct{}

func (*executable) release() (int64, error) { return 0, errors.ErrUnsupported }

func (*executable) resident() int64 { return 0 }
