// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package regularfile tells files from what only looks like them. Whoever opens a pipe waits until somebody writes into
// it, and cannot be stopped meanwhile, so what is read again while the Collector runs is looked at first.
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
