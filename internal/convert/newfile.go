// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"io"
	"os"
)

// create writes a new file that only its owner can read, because it may contain secrets.
func create(path string, text []byte) error {
	return createWith(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// createWith removes the file if writing fails, as on a full disk: half a configuration may be valid, and would block
// the next attempt.
func createWith(path string, write func(w io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the user names it
	if err != nil {
		return err
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
