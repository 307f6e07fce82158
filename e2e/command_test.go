// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
)

// A command that only reads its configuration takes well below a second; the rest is for busy machines.
const commandTimeout = 3 * time.Minute

// command runs a distribution to its end and returns what it printed.
func command(t *testing.T, distribution string, env []string, args ...string) (exit int, output string) {
	t.Helper()
	p := process.Start(t, process.Settings{Path: process.Binary(t, distribution), Args: args, Env: env})
	exit = p.Wait(commandTimeout)
	return exit, p.Output()
}

// inventory is the output of `components`.
type inventory struct {
	Buildinfo struct {
		Command, Description, Version string
	}
	Kinds map[string][]struct{ Name, Module string } `yaml:",inline"`
}

func components(t *testing.T, distribution string) inventory {
	t.Helper()
	exit, output := command(t, distribution, nil, "components")
	require.Zero(t, exit)
	return parseInventory(t, output)
}

func parseInventory(t *testing.T, output string) inventory {
	t.Helper()
	var inv inventory
	require.NoError(t, yaml.Unmarshal([]byte(output), &inv), "cannot read the output of `components`: %s", output)
	return inv
}

func (inv inventory) has(kind, name string) bool {
	for _, c := range inv.Kinds[kind] {
		if c.Name == name {
			return true
		}
	}
	return false
}

// configFile writes a configuration and returns its path.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func eachDistribution(t *testing.T, f func(t *testing.T, d repository.Distribution)) {
	t.Helper()
	for _, d := range repository.Distributions() {
		t.Run(d.Name, func(t *testing.T) { f(t, d) })
	}
}
