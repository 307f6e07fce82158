// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/targets"
)

const (
	// What the README promises "within seconds", on a busy machine.
	firstWords = 3 * time.Minute
	// A file is read within 5 s, its targets are scraped within 10 s more, and sent.
	firstSeries = 4 * time.Minute
	drainTime   = 2 * time.Minute
	// An error in the collector's log.
	loggedError = `(?m)^\S+\terror\t`
)

// The README's quick start: no server, a second terminal, a file, ctrl-C.
func TestQuickStart(t *testing.T) {
	a := startDocumentedAgent(t)
	a.WaitLog(firstWords, "flowing: ")
	a.WaitHTTP(firstWords, a.url(healthPort, "/"), nil)
	a.WaitLog(firstWords, a.url(consolePort, "/")) // readers open this URL
	a.WaitHTTP(firstWords, a.url(consolePort, "/"), matches("<title>Godwit console</title>"))
	a.WaitHTTP(firstWords, a.url(consolePort, "/api/v1/overview"), matches(`"id":"exporter/remotewrite"`))
	a.WaitHTTP(firstWords, a.url(lookPort, "/metrics"), matches(`(?m)^up\{[^}]*job="godwit"[^}]*\} 1\b`))

	target := targets.New(t, targets.Page{Body: "# TYPE geese_flying gauge\ngeese_flying{flock=\"north\"} 42\n"})
	targets.WriteFileSD(t, filepath.Join(a.targets, "geese.json"), map[string]string{"job": "geese"}, target)
	a.WaitHTTP(firstSeries, a.url(lookPort, "/metrics"),
		matches(`(?m)^geese_flying\{[^}]*flock="north"[^}]*job="geese"[^}]*\} 42\b`))

	assert.Zero(t, a.Stop(syscall.SIGINT, drainTime))
	drained(t, a)
}

// drained checks that a process that shut down in order lost nothing.
func drained(t *testing.T, a *agent) {
	t.Helper()
	output := a.Output()
	assert.Contains(t, output, "Shutdown complete.")
	assert.NotContains(t, output, "lost data")
	assert.NotRegexp(t, loggedError, output, "no error was logged")
}
