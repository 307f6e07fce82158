// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// crashesVariable names the environment variable with the number of times that TestRemoteWriteQueueSurvivesCrashes
// kills the agent.
const crashesVariable = "GODWIT_CRASHES"

const (
	fewCrashes = 5
	// A crash comes within this time after the agent has acknowledged something.
	longestLife = 500 * time.Millisecond
)

// patient has a long timeout, so that a slow response is not retried: a backlog is sent in large requests, which take a
// busy machine some time.
const patient = "exporters: {remotewrite: {timeout: 30s}}"

// withQueue is an overlay that puts the queue on disk.
const withQueue = `
exporters: {remotewrite: {batch: {timeout: 20ms}, queue: {directory: data, size: 1000000000}}}
`

// queuedIn is an overlay that reads the queue's settings from one file, and the number of the agent's life from
// another.
const queuedIn = `
exporters: {remotewrite: {batch: {timeout: 20ms}, queue: "${file:%s}", http: {headers: {` + lifeHeader + `: "${file:%s}"}}}}
extensions: {file_storage: {directory: data, create_directory: true}}
service: {extensions: [health_check, file_storage]}
`

// The queue in files of the exporter's own, or in file_storage.
const (
	inDirectory   = "{directory: data, size: 1000000000}"
	inFileStorage = "{storage: file_storage, size: 1000000000}"
)

// fixedShards is an overlay that fixes the number of shards. Then a series always has the same shard, and repeated
// samples can be judged by shard.
const fixedShards = `
exporters: {remotewrite: {shards: {min: 3, max: 3}}}
`

func TestRemoteWriteQueueSurvivesCrashes(t *testing.T) {
	t.Parallel()
	surviveCrashes(t, func(int) string { return inDirectory }, fixedShards)
}

func TestRemoteWriteFileStorageSurvivesCrashes(t *testing.T) {
	t.Parallel()
	surviveCrashes(t, func(int) string { return inFileStorage }, fixedShards)
}

// An upgraded agent takes over a queue in file_storage, and survives kills meanwhile.
func TestRemoteWriteQueueSurvivesCrashesOfUpgrades(t *testing.T) {
	t.Parallel()
	surviveCrashes(t, func(crash int) string {
		if crash == 0 || crash%100 == 1 {
			return inFileStorage
		}
		return inDirectory
	}, "")
}

// surviveCrashes kills an agent again and again. where returns the settings of its queue after each crash.
func surviveCrashes(t *testing.T, where func(crash int) string, shards string) {
	t.Helper()
	crashes := fewCrashes
	if text := os.Getenv(crashesVariable); text != "" {
		var err error
		crashes, err = strconv.Atoi(text)
		require.NoError(t, err, crashesVariable)
	}
	// The server's behaviour in successive lives.
	moods := []rwserver.Step{
		{}, {Status: 503}, {Delay: 20 * time.Millisecond}, {Fault: rwserver.ResetAfterBody}, {Fault: rwserver.Hang},
	}
	y, r := newTally(), newRepeats()
	server := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: y.observe, ObserveRequest: r.observe})
	addr := freeport.Addr(t)
	queue, life := configFile(t, where(0)), configFile(t, "0")
	c := startCollector(t, fmt.Sprintf(impatient, server.URL(), addr), fmt.Sprintf(queuedIn, queue, life), patient, shards)
	kills := 0
	kill := func() {
		c.Kill()
		kills++
		require.NoError(t, os.WriteFile(life, []byte(strconv.Itoa(kills)), 0o600))
	}
	for crash := range crashes {
		if crash > 0 && where(crash-1) != where(crash) && where(crash) == inFileStorage {
			// A downgrade starts with an empty queue: an earlier version does not read the later one's files.
			server.Always(rwserver.Step{})
			wait.Until(t, delivery, func() (bool, string) {
				left := c.metric(t, "otelcol_exporter_queue_size")
				return left == 0, fmt.Sprintf("%v bytes are still queued", left)
			})
			kill()
			require.NoError(t, os.WriteFile(queue, []byte(where(crash)), 0o600))
			c.Restart()
			c.ready()
		}
		require.NoError(t, os.WriteFile(queue, []byte(where(crash)), 0o600))
		server.Always(moods[crash%len(moods)])
		stop := y.flood(t, addr)
		y.progress(t)
		wait.Pause(t.Context(), rand.N(longestLife))
		kill()
		stop()
		for rand.N(2) == 0 { // once more, perhaps before it has read its queue
			c.Restart()
			wait.Pause(t.Context(), rand.N(longestLife))
			kill()
		}
		c.Restart()
		c.ready()
	}
	server.Always(rwserver.Step{})
	wait.Until(t, delivery, y.arrivedBut(0))
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	assert.Empty(t, server.Violations())
	repeated := y.sound(t)
	again := 0
	if shards != "" {
		problems, n, requests := r.judge()
		assert.Empty(t, problems)
		assert.Equal(t, 3, n, "shards")
		again = requests
	}
	t.Logf("%d kills: %d samples acknowledged, %d arrived again, of %d requests; %v", kills, y.acknowledged(), repeated, again, server.Totals())
}

const (
	shortDown = 20 * time.Second
	// The memory that a growing queue on disk may take, in MiB.
	queueRoom = 24
	// A queue drains at least this many times faster than it filled.
	drainSpeed = 5
)

// While a destination is down the queue grows on disk and not in memory. When it is back everything arrives.
func TestRemoteWriteQueueOnDiskKeepsMemoryFlat(t *testing.T) {
	t.Parallel()
	down := shortDown
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		down, err = time.ParseDuration(text)
		require.NoError(t, err, soakVariable)
	}
	destination, addr := freeport.Addr(t), freeport.Addr(t)
	c := startCollector(t, fmt.Sprintf(impatient, "http://"+destination+"/api/v1/write", addr), withQueue, patient)
	y := newTally()
	stop := y.flood(t, addr)
	y.progress(t)
	memory := &trend{what: "resident memory, MiB", tolerance: 0.2, floor: queueRoom}
	for end := time.Now().Add(down); time.Now().Before(end); wait.Pause(t.Context(), readingEvery) {
		memory.add(time.Now(), mib(c.Usage().Anon))
	}
	stop()
	assert.True(t, memory.steady(), "%v", memory)
	queued := c.metric(t, "otelcol_exporter_queue_size")
	assert.Positive(t, queued)

	server := rwserver.New(t, rwserver.Options{Addr: destination, CountOnly: true, Observe: y.observe})
	back := time.Now()
	wait.Until(t, delivery+down, y.arrivedBut(0))
	drained := time.Since(back)
	wait.Until(t, telemetryWait, func() (bool, string) {
		left := c.metric(t, "otelcol_exporter_queue_size")
		return left == 0, fmt.Sprintf("%v bytes are still queued", left)
	})
	assert.Less(t, drained, max(down/drainSpeed, delivery), "a queue must drain faster than it filled")
	assert.Zero(t, c.metric(t, "otelcol_exporter_send_failed_metric_points"))
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	assert.Zero(t, y.sound(t), "nothing failed, and still samples arrived twice")
	assert.Empty(t, server.Violations())
	t.Logf("%v down: %d samples acknowledged, %.1f MiB queued, delivered in %v; %v", down, y.acknowledged(), queued/(1<<20), drained, memory)
}
