// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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

// startAgent starts it in a folder of its own, on ports that are free.
func startAgent(t *testing.T, env ...string) *agent {
	t.Helper()
	return startAgentWith(t, "", env...)
}

// startAgentWith lays a configuration over the shipped one, if it is not empty.
func startAgentWith(t *testing.T, overlay string, env ...string) *agent {
	t.Helper()
	ports := documentedPorts(t)
	for name := range ports {
		ports[name] = freeport.Get(t)
		env = append(env, fmt.Sprintf("%s=%d", name, ports[name]))
	}
	return launchAgent(t, ports, overlay, env...)
}

// startDocumentedAgent keeps to the ports that the documents name, unless one of them is taken on this machine. It is
// for a test that runs alone: one of them may be given to whoever connects somewhere before the agent has it.
func startDocumentedAgent(t *testing.T) *agent {
	t.Helper()
	ports := documentedPorts(t)
	for _, port := range ports {
		if !freeport.Free(port) {
			return startAgent(t)
		}
	}
	return launchAgent(t, ports, "")
}

func documentedPorts(t *testing.T) map[string]int {
	t.Helper()
	ports := map[string]int{}
	for _, match := range portVariable.FindAllStringSubmatch(repository.Read(t, agentConfig), -1) {
		port, err := strconv.Atoi(match[2])
		require.NoError(t, err)
		ports[match[1]] = port
	}
	for _, name := range []string{consolePort, telemetryPort, loopbackPort, lookPort, healthPort} {
		require.Contains(t, ports, name, "%s has no such variable", agentConfig)
	}
	return ports
}

func launchAgent(t *testing.T, ports map[string]int, overlay string, env ...string) *agent {
	t.Helper()
	dir := t.TempDir()
	args := []string{"--config", filepath.Join(repository.Root(t), agentConfig)}
	if overlay != "" {
		args = append(args, "--config", configFile(t, overlay))
	}
	a := &agent{targets: filepath.Join(dir, "targets"), ports: ports}
	require.NoError(t, os.Mkdir(a.targets, 0o700))
	a.Process = process.Start(t, process.Settings{
		Path: process.Installed(t, "godwit-agent"),
		Args: args,
		Env:  append([]string{"GODWIT_TARGETS=" + a.targets, "GODWIT_DATA=" + filepath.Join(dir, "data")}, env...),
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
