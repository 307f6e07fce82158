// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/repository"
)

const consoleWeb = "extension/consoleextension/web/"

// The committed page of the console is what its sources build in another directory, with only the packages of the lock
// file.
func TestConsolePageIsWhatItsSourcesGive(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("no npm on this machine: what the console's page is built of is not compared with its sources")
	}
	root, elsewhere := repository.Root(t), t.TempDir()
	for _, name := range repository.Files(t) {
		if rest, here := strings.CutPrefix(name, consoleWeb); here {
			copyFile(t, filepath.Join(root, name), filepath.Join(elsewhere, rest))
		}
	}
	run := func(name string, args ...string) ([]byte, error) {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = elsewhere
		c.Env = append(os.Environ(), "MAKEFLAGS=", "MFLAGS=") // unset what the make that runs this test has set
		return c.CombinedOutput()
	}
	if out, err := run("npm", "ci", "--silent"); err != nil {
		t.Skipf("the registry of npm cannot be reached: %s", out)
	}
	out, err := run("make", "check", "test")
	assert.NoError(t, err, "%s", out)
}
