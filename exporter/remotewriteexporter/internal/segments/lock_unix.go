// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package segments

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockFolder locks a folder for one store, until the file is closed or the process ends.
func lockFolder(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the configuration names the folder
	if err != nil {
		return nil, err
	}
	if err := Lock(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("cannot lock %s, which another process may use: %w", dir, err)
	}
	return file, nil
}

// Lock locks a file for this process, or fails if another has locked it. bbolt uses the same lock.
func Lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// SyncFolder waits until the names of files are on disk.
func SyncFolder(dir string) error {
	folder, err := os.Open(dir) //nolint:gosec // the same
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	return folder.Sync()
}
