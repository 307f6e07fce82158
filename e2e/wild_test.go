// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/matrix"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	// The number of configurations in the short form.
	fewWild = 4
	// The number of scrapes to wait for, and for how long at most: some configurations scrape nothing.
	wildScrapes, wildLife = 8, 3 * time.Second
	// The limits of such a process: MiB of anonymous memory, and CPU cores.
	maxWild, maxWildCores = 300, 1.2
)

var died = regexp.MustCompile(`(?m)^(panic: |fatal error: |goroutine \d+ \[|\s*runtime error)`)

// With any values that the configuration's schema allows, however odd, a process either rejects them at start and names
// the key, or runs, with data flowing, until it is told to end. GODWIT_MATRIX is the number of configurations.
func TestWildConfigurations(t *testing.T) {
	t.Parallel()
	schema, err := matrix.ReadSchema(filepath.Join(repository.Root(t), "docs", "reference", "godwit.schema.json"))
	require.NoError(t, err)
	tries := fewWild
	if n, err := strconv.Atoi(os.Getenv("GODWIT_MATRIX")); err == nil {
		tries = n
	}
	for i := range tries {
		t.Run(fmt.Sprint(i), func(t *testing.T) { t.Parallel(); roam(t, schema, uint64(i)) })
	}
}

// roam runs a wild configuration.
func roam(t *testing.T, schema *matrix.Schema, seed uint64) {
	t.Helper()
	target := targets.NewFunc(t, func(scrape int) targets.Page { return targets.Page{Body: fmt.Sprintf(matrixPage, scrape)} })
	dir := t.TempDir()
	text, changed, err := schema.Wild(seed, map[string]string{
		"TARGET": target.Addr(), "FIRST": rwserver.New(t, rwserver.Options{CountOnly: true}).URL(), "DIR": dir,
		"WRITE": freeport.Addr(t), "STREAM": freeport.Addr(t), "SOCKET": freeport.Addr(t),
		"CONSOLE": strconv.Itoa(freeport.Get(t)), "PORT": strconv.Itoa(freeport.Get(t)),
	})
	require.NoError(t, err)
	defer func() {
		if t.Failed() {
			t.Logf("configuration %d:\n  %s", seed, strings.Join(changed, "\n  "))
		}
	}()
	born := time.Now()
	p := process.Start(t, process.Settings{Path: process.Binary(t, "godwit"), Args: []string{"--config", configFile(t, text)}, Dir: dir})
	wait.Until(t, firstWords, func() (bool, string) {
		return !p.Running() || strings.Contains(p.Output(), "Everything is ready."), "neither ready nor at an end"
	})
	if p.Running() {
		deadline := time.Now().Add(wildLife)
		wait.Until(t, 2*wildLife, func() (bool, string) {
			return !p.Running() || target.Scrapes() >= wildScrapes || time.Now().After(deadline), "never"
		})
		if assert.True(t, p.Running(), "it ended by itself") {
			usage, age := p.Usage(), time.Since(born)
			assert.Less(t, mib(usage.Anon), float64(maxWild), "memory")
			assert.Less(t, usage.CPU, 2*time.Second+time.Duration(maxWildCores*float64(age)), "CPU in %v", age)
			assert.Zero(t, p.Stop(syscall.SIGTERM, endWait), "exit code")
		}
	} else {
		_, why, _ := strings.Cut(p.Output(), "Error: ")
		t.Logf("refused: %s", why)
		assert.True(t, refusalNames(why, changed), "the refusal names no key")
	}
	assert.NotRegexp(t, died, p.Output())
}

// refusalNames reports whether the output of a process names a changed key or a part of it: the Collector's own helpers
// say "TLS" for any key below `tls`.
func refusalNames(output string, changed []string) bool {
	output = strings.ToLower(output)
	for _, change := range changed {
		path, _, _ := strings.Cut(change, ": ")
		keys := strings.Split(path, "::")
		for _, key := range keys[2:] {
			if strings.Contains(output, key) {
				return true
			}
		}
	}
	return false
}
