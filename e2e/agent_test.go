// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
)

// agent is godwit-agent on its shipped configuration, as `make run` starts it.
type agent struct {
	*process.Process

	// targets is the watched folder.
	targets string
	ports   map[string]int
}

const agentConfig = "distributions/godwit-agent/config.yaml"

// Ports of the agent's configuration, by their variables.
const (
	consolePort   = "GODWIT_CONSOLE_PORT"
	telemetryPort = "GODWIT_TELEMETRY_PORT"
	loopbackPort  = "GODWIT_LOOPBACK_PORT"
	lookPort      = "GODWIT_LOOK_PORT"
	healthPort    = "GODWIT_HEALTH_PORT"
)

var portVariable = regexp.MustCompile(`\$\{env:(GODWIT_\w+_PORT):-(\d+)\}`)

// documented is held by the test whose agent has the ports that the documents name.
var documented sync.Mutex

// startAgent starts it in a folder of its own. It keeps to the ports that the
// documents name unless one of them is taken on this machine, or by another test.
func startAgent(t *testing.T, env ...string) *agent {
	t.Helper()
	return startAgentWith(t, "", env...)
}

// startAgentWith lays a configuration over the shipped one, if it is not empty.
func startAgentWith(t *testing.T, overlay string, env ...string) *agent {
	t.Helper()
	dir := t.TempDir()
	a := &agent{targets: filepath.Join(dir, "targets"), ports: map[string]int{}}
	require.NoError(t, os.Mkdir(a.targets, 0o700))
	taken := !documented.TryLock()
	if !taken {
		t.Cleanup(documented.Unlock)
	}
	for _, match := range portVariable.FindAllStringSubmatch(repository.Read(t, agentConfig), -1) {
		port, err := strconv.Atoi(match[2])
		require.NoError(t, err)
		a.ports[match[1]] = port
		taken = taken || !freeport.Free(port)
	}
	for _, name := range []string{consolePort, telemetryPort, loopbackPort, lookPort, healthPort} {
		require.Contains(t, a.ports, name, "%s has no such variable", agentConfig)
	}
	settings := []string{"GODWIT_TARGETS=" + a.targets, "GODWIT_DATA=" + filepath.Join(dir, "data")}
	if taken {
		for name := range a.ports {
			a.ports[name] = freeport.Get(t)
			settings = append(settings, fmt.Sprintf("%s=%d", name, a.ports[name]))
		}
	}
	args := []string{"--config", filepath.Join(repository.Root(t), agentConfig)}
	if overlay != "" {
		args = append(args, "--config", configFile(t, overlay))
	}
	a.Process = process.Start(t, process.Settings{
		Path: process.Installed(t, "godwit-agent"),
		Args: args,
		Env:  append(settings, env...),
		Dir:  dir,
	})
	return a
}

// url of a page the agent serves.
func (a *agent) url(port, path string) string {
	return fmt.Sprintf("http://127.0.0.1:%d%s", a.ports[port], path)
}

// matches is an answer that a regular expression fits.
func matches(pattern string) process.Answer {
	re := regexp.MustCompile(pattern)
	return func(status int, body string) (bool, string) {
		return status == 200 && re.MatchString(body), fmt.Sprintf("status %d and nothing like %s in %d bytes", status, pattern, len(body))
	}
}
