// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/godwit-otel/godwit/e2e/repository"
)

// BinaryDir names the environment variable that says where the binaries are when
// they are not in bin/ of the repository.
const BinaryDir = "GODWIT_BIN"

// Binary returns the path of a built distribution and fails the test when there
// is none: a test that is skipped tells nobody that nothing was tested.
func Binary(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv(BinaryDir)
	if dir == "" {
		dir = filepath.Join(repository.Root(t), "bin")
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("cannot find the binary of %s: run `make build`, or set %s to the folder it is in: %v", name, BinaryDir, err)
	}
	return path
}

// Installed returns the path of a copy of a built distribution, written in pieces
// as unpackers of packages and images do. It matters for resident memory: Linux
// 6.18 maps a file by whole folios of the page cache, as large as the pieces in
// which it was written, and the Go linker writes in pieces of 2 MB.
func Installed(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := install(path, Binary(t, name)); err != nil {
		t.Fatalf("cannot install %s: %v", name, err)
	}
	return path
}

func install(path, from string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	// The struct hides ReadFrom, which would leave the size of the pieces to the kernel.
	_, err = io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, make([]byte, 32<<10))
	return err
}
