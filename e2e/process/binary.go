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

// BinaryDir names the environment variable with the directory of the binaries, if that is not bin/ of the repository.
const BinaryDir = "GODWIT_BIN"

// Binary returns the path of a built distribution. It fails the test if there is none: a skipped test would hide that
// nothing was tested.
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

// Installed returns the path of a copy of a built distribution, written in chunks as package managers and container
// engines do. That matters for resident memory: Linux 6.18 maps a file by whole folios of the page cache, which are as
// large as the chunks it was written in, and the Go linker writes chunks of 2 MB.
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
	// The struct hides ReadFrom, which would leave the size of the chunks to the kernel.
	_, err = io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, make([]byte, 32<<10))
	return err
}
