// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package segments

import (
	"os"
	"path/filepath"
)

// lockFolder opens the lock file, without a lock.
func lockFolder(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
}

// Lock does nothing on systems without such locks.
func Lock(*os.File) error { return nil }

// SyncFolder does nothing on systems where folders cannot be synced.
func SyncFolder(string) error { return nil }
