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

// agent is a running godwit-agent with its shipped configuration, started as `make run` starts it.
type agent struct {
	*process.Process

	// targets is the watched directory.
	targets string
	ports   map[string]int
}

const agentConfig = "distributions/godwit-agent/config.yaml"

// The variables of the agent's configuration that hold its ports.
const (
	consolePort   = "GODWIT_CONSOLE_PORT"
	telemetryPort = "GODWIT_TELEMETRY_PORT"
	loopbackPort  = "GODWIT_LOOPBACK_PORT"
	lookPort      = "GODWIT_LOOK_PORT"
	healthPort    = "GODWIT_HEALTH_PORT"
)

var portVariable = regexp.MustCompile(`\$\{env:(GODWIT_\w+_PORT):-(\d+)\}`)

// startAgent starts the agent in a temporary directory, on free ports.
func startAgent(t *testing.T, env ...string) *agent {
	t.Helper()
	return startAgentWith(t, "", env...)
}

// startAgentWith merges overlay, unless it is empty, into the shipped configuration.
func startAgentWith(t *testing.T, overlay string, env ...string) *agent {
	t.Helper()
	ports := documentedPorts(t)
	for name := range ports {
		ports[name] = freeport.Get(t)
		env = append(env, fmt.Sprintf("%s=%d", name, ports[name]))
	}
	return launchAgent(t, ports, overlay, env...)
}

// startDocumentedAgent uses the ports that the documentation names, unless one of them is in use on this machine. Only
// a test that runs alone may call it: in parallel, another connection could get one of these ports before the agent
// does.
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

// url returns the URL of a page that the agent serves.
func (a *agent) url(port, path string) string {
	return fmt.Sprintf("http://127.0.0.1:%d%s", a.ports[port], path)
}

// matches accepts a response with status 200 whose body matches a regular expression.
func matches(pattern string) process.Answer {
	re := regexp.MustCompile(pattern)
	return func(status int, body string) (bool, string) {
		return status == 200 && re.MatchString(body), fmt.Sprintf("status %d and nothing like %s in %d bytes", status, pattern, len(body))
	}
}
