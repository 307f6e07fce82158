// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	maxIdleRSS = 32 << 20
	// maxAgentMB limits the size of the binary.
	maxAgentMB = 40.0
	// Long enough for several scrapes, and for the heap to shrink to what it needs.
	settling = 20 * time.Second
	watching = 15 * time.Second
)

func TestIdleRSS(t *testing.T) {
	t.Parallel()
	a := startAgent(t)
	a.WaitHTTP(firstWords, a.url(healthPort, "/"), nil)
	settled := time.Now().Add(settling)
	var most process.Usage
	wait.Until(t, settling+watching+time.Minute, func() (bool, string) {
		if u := a.Usage(); time.Now().After(settled) && u.RSS > most.RSS {
			most = u
		}
		return time.Now().After(settled.Add(watching)), "still watching"
	})
	t.Logf("idle: RSS %.1f MiB, of which %.1f anonymous; peak %.1f MiB; CPU %v since the start",
		mib(most.RSS), mib(most.Anon), mib(most.PeakRSS), most.CPU)
	assert.Positive(t, most.RSS)
	assert.LessOrEqual(t, mib(most.RSS), mib(maxIdleRSS))
	assert.Zero(t, a.Stop(syscall.SIGTERM, drainTime))
}

// The size of the binary tells whether the linker removes methods that nobody calls (docs/design/025). A single lookup
// of a method by a name known only at run time adds 14 MB. Other platforms have other sizes.
func TestAgentIsSmall(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("the bound is for amd64")
	}
	info, err := os.Stat(process.Binary(t, "godwit-agent"))
	require.NoError(t, err)
	assert.Less(t, float64(info.Size())/1e6, maxAgentMB)
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
