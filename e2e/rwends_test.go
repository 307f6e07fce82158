// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// leftInMemory matches the log message about acknowledged samples that were not delivered at shutdown.
var leftInMemory = regexp.MustCompile(`shut down with data in the queue.*"samples": (\d+)`)

// A signal ends the agent in time even if all senders wait for a full queue, and the log has the number of samples left
// in it.
func TestATerminationDoesNotWaitForAFullQueue(t *testing.T) {
	t.Parallel()
	const bound = time.Minute // the senders' block_timeout, the shutdown_timeout, and time for a busy machine
	y := newTally()
	server := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: y.observe})
	server.Always(takesNothing)
	addr := freeport.Addr(t)
	c := startCollector(t, fmt.Sprintf(impatient, server.URL(), addr), "exporters: {remotewrite: {queue: {size: 20000, on_full: block}}}")
	stop := y.flood(t, addr)
	acknowledged := -1
	wait.Until(t, delivery, func() (bool, string) {
		wait.Pause(t.Context(), time.Second) // many requests
		before := acknowledged
		acknowledged = y.acknowledged()
		return acknowledged > 0 && acknowledged == before, fmt.Sprintf("%d samples are acknowledged, before that %d", acknowledged, before)
	})
	begin := time.Now()
	c.Signal(syscall.SIGTERM)
	assert.Zero(t, c.Wait(bound))
	t.Logf("it took %v, with %d samples acknowledged", time.Since(begin).Round(time.Millisecond), acknowledged)
	stop()
	said := leftInMemory.FindStringSubmatch(c.Output())
	if assert.NotNil(t, said, "what is lost is said") {
		lost, err := strconv.Atoi(said[1])
		require.NoError(t, err)
		assert.GreaterOrEqual(t, lost, acknowledged)
	}
	assert.NotContains(t, c.Output(), "panic:")
}

// A reload of the configuration keeps a queue in memory: although the destination is down and data keep coming, all
// acknowledged data arrive in the end, once and in order.
func TestAReloadKeepsAQueueInMemory(t *testing.T) {
	t.Parallel()
	const hangups = 3
	y := newTally()
	server := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: y.observe})
	server.Always(takesNothing)
	addr := freeport.Addr(t)
	c := startCollector(t, fmt.Sprintf(impatient, server.URL(), addr), patient, "exporters: {remotewrite: {shutdown_timeout: 100ms}}")
	stop := y.flood(t, addr)
	for n := range hangups {
		y.progress(t)
		c.Signal(syscall.SIGHUP)
		wait.Until(t, delivery, func() (bool, string) {
			times := strings.Count(c.Output(), "Everything is ready. Begin running and processing data.")
			return times == n+2, fmt.Sprintf("it was ready %d times", times)
		})
	}
	y.progress(t)
	assert.Zero(t, server.Totals().Samples)
	server.Always(rwserver.Step{})
	stop()
	wait.Until(t, delivery, y.arrivedBut(0))
	assert.Zero(t, y.sound(t))
	assert.Zero(t, c.metric(t, "otelcol_exporter_send_failed_metric_points"))
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	assert.NotContains(t, c.Output(), "panic:")
	assert.Empty(t, server.Violations())
	t.Logf("%d samples acknowledged through %d reloads", y.acknowledged(), hangups)
}
