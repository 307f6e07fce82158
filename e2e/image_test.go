// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each distribution's image, assembled as its Dockerfile says but without a container engine, runs.
func TestImage(t *testing.T) {
	for _, name := range []string{"godwit", "godwit-agent", "godwit-gateway"} {
		t.Run(name, func(t *testing.T) {
			repo, root := "..", t.TempDir()
			file := filepath.Join(repo, "distributions", name, "Dockerfile")
			final := finalStage(t, file)

			for _, args := range final["COPY"] {
				copyInto(t, repo, root, strings.Fields(args))
			}
			user := final["USER"][0]
			assert.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, user, "the image must not run as root")

			var entrypoint, cmd []string
			require.NoError(t, json.Unmarshal([]byte(final["ENTRYPOINT"][0]), &entrypoint))
			require.NoError(t, json.Unmarshal([]byte(final["CMD"][0]), &cmd))
			require.Equal(t, "--config", cmd[0])
			binary, config := filepath.Join(root, entrypoint[0]), filepath.Join(root, cmd[1])

			run := exec.CommandContext(t.Context(), binary, "validate", "--config", config)
			run.Env = append(os.Environ(), strings.Fields(final["ENV"][0])...)
			out, err := run.CombinedOutput()
			require.NoError(t, err, "%s", out)

			text, err := os.ReadFile(config)
			require.NoError(t, err)
			for port := range strings.FieldsSeq(final["EXPOSE"][0]) {
				assert.Contains(t, string(text), port, "EXPOSE names a port that the configuration does not open")
			}
		})
	}
}

// finalStage returns the arguments of each instruction in the last stage of a Dockerfile.
func finalStage(t *testing.T, file string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	stage := map[string][]string{}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		verb, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "", "#":
		case "FROM":
			clear(stage)
		default:
			stage[verb] = append(stage[verb], args)
		}
	}
	for _, verb := range []string{"COPY", "ENV", "USER", "EXPOSE", "ENTRYPOINT", "CMD"} {
		require.NotEmpty(t, stage[verb], "%s: no %s in the last stage", file, verb)
	}
	return stage
}

// copyInto executes one COPY. In the build stage, /src is the repository after make and /empty an empty directory; all
// else is in the base image.
func copyInto(t *testing.T, repo, root string, args []string) {
	t.Helper()
	fromBuild := false
	for strings.HasPrefix(args[0], "--") {
		fromBuild = fromBuild || args[0] == "--from=build"
		args = args[1:]
	}
	src, dst := args[0], filepath.Join(root, args[1])
	switch {
	case fromBuild && src == "/empty":
		require.NoError(t, os.MkdirAll(dst, 0o750))
		return
	case fromBuild && strings.HasPrefix(src, "/src/"):
		src = filepath.Join(repo, strings.TrimPrefix(src, "/src/"))
	case fromBuild:
		return
	default:
		src = filepath.Join(repo, src)
	}
	info, err := os.Stat(src)
	require.NoError(t, err, "COPY of a file that is not there")
	data, err := os.ReadFile(src)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(dst), fs.ModePerm))
	require.NoError(t, os.WriteFile(dst, data, info.Mode()))
}
