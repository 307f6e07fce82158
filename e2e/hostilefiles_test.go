// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Invalid content of files that are reread does not change the settings in force, and delays nothing.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	for i, h := range []struct {
		name    string
		content func(t *testing.T, path string)
	}{
		{"garbage", spill(string(noise(100_000)))},
		{"truncated", spill("- targets: [\"")},
		{"nested", spill(strings.Repeat("[", 100_000))},
		{"aliases", spill("a: &a [x,x,x,x,x,x,x,x,x]\n" + manyAliases(12))},
		{"large", spill("# " + strings.Repeat("x", 8<<20) + "\n[]\n")},
		{"wrong", spill("rules: 5\nscrape_configs: {a: b}\n")},
		{"a pipe", func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, os.Remove(path))
			require.NoError(t, syscall.Mkfifo(path, 0o600))
		}},
		{"gone", func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, os.Remove(path))
		}},
		{"a folder", func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(path, 0o700))
		}},
	} {
		if !tried(i, h.name) {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files := map[string]string{
				"targets.yaml": "- targets: []\n", "scrape.yaml": "scrape_configs: []\n", "rules.yaml": "rules: [{name: one, max_series: 1000}]\n",
			}
			for file, text := range files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
			}
			s := besiegeAgent(t, fmt.Sprintf("processors: {cardinality: {rules_file: %[1]s/rules.yaml, rules_poll_interval: 1s}}\n"+
				"receivers: {fastprometheus: {config: {scrape_config_files: [%[1]s/scrape.yaml]}}}\n", dir),
				fmt.Sprintf("        - {job_name: found, file_sd_configs: [{files: [%s/targets.yaml], refresh_interval: 1s}]}\n", dir))
			s.withstand(func(ctx context.Context) {
				for file := range files {
					h.content(t, filepath.Join(dir, file))
				}
				<-ctx.Done()
			})
		})
	}
}

func spill(text string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}
