// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
)

const knownHole = `{"schema_version": "1.3.1", "id": "GO-2026-9999", "modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z",
"summary": "A hole of a test's", "details": "None.", "affected": [{"package": {"name": "go.uber.org/zap", "ecosystem": "Go"},
"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}], "ecosystem_specific": {"imports": [{"path": "go.uber.org/zap"}]}}],
"database_specific": {"url": "https://example.com", "review_status": "REVIEWED"}}`

// A known vulnerability fails the check, none passes it. If the database cannot be reached, the check says so, and
// fails only with STRICT.
func TestVulncheck(t *testing.T) {
	t.Parallel()
	database := func(modules string) string {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"index/db.json": `{"modified": "2026-01-01T00:00:00Z"}`, "index/modules.json": modules, "ID/GO-2026-9999.json": knownHole,
		} {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		return "file://" + dir
	}
	root := repository.Root(t)
	f := func(db, strict string, exit int, says string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(root, "internal/tools/vulncheck.sh"), process.Binary(t, "godwit-agent"))
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(root, ".tools")+":"+os.Getenv("PATH"), "GOVULNDB="+db, "STRICT="+strict)
		out, _ := cmd.CombinedOutput()
		assert.Equal(t, exit, cmd.ProcessState.ExitCode(), "%s", out)
		assert.Contains(t, string(out), says)
	}
	nobody := fmt.Sprintf("http://127.0.0.1:%d", freeport.Get(t))
	f(database(`[]`), "", 0, "nothing known")
	f(database(`[{"path": "go.uber.org/zap", "vulns": [{"id": "GO-2026-9999", "modified": "2026-01-01T00:00:00Z"}]}]`), "", 1, "GO-2026-9999")
	f(nobody, "", 0, "NOT CHECKED for vulnerabilities")
	f(nobody, "1", 1, "NOT CHECKED for vulnerabilities")
}
