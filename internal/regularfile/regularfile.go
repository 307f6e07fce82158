// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package regularfile tells regular files from others. Opening a pipe waits until somebody writes into
// it, and cannot be stopped meanwhile, so files that are read again while the Collector runs are checked first.
package regularfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Check returns an error unless path leads to a regular file.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("cannot read %q: it is no regular file but %s", path, info.Mode().Type())
	}
	return nil
}
