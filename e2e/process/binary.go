// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
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
