// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package runtimeprofileextension

import "errors"

func releaseBinaryPages() (int64, error) { return 0, errors.ErrUnsupported }

func residentBinaryPages() int64 { return 0 }
