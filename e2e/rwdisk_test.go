// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// The size of the agent's disk in KiB, and how much of it another program uses.
const (
	diskSize = 512
	diskUsed = 256
)

// With a full disk the queue refuses data and says so, or drops the oldest and counts them. Once there is space again,
// because some was freed or because the destination is back, it goes on by itself, and all acknowledged data arrive.
func TestRemoteWriteQueueOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"block", "drop_newest", "drop_oldest"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			y := newTally()
			server := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: y.observe})
			server.Always(rwserver.Step{Status: 503})
			addr, data := freeport.Addr(t), t.TempDir()
			c := startUnder(t, smallDisk(t, data, fmt.Sprintf("%dk", diskSize)), "godwit-agent", fmt.Sprintf(impatient, server.URL(), addr), patient,
				fmt.Sprintf("exporters: {remotewrite: {batch: {timeout: 20ms}, queue: {directory: %q, size: 1000000000, on_full: %s}}}", data, policy))
			others := filepath.Join("/proc", strconv.Itoa(c.PID()), "root", data, "others")
			require.NoError(t, os.WriteFile(others, make([]byte, diskUsed<<10), 0o600))
			dropped := func() int { return int(c.metric(t, "otelcol_exporter_remotewrite_dropped_items")) }
			full := func(room string) {
				if policy != "drop_oldest" {
					assert.ErrorContains(t, y.refusals(t, 100), "no space left on device", room)
					return
				}
				before := dropped()
				wait.Until(t, delivery, func() (bool, string) {
					n := dropped() - before
					return n >= 10*tallyProgress, fmt.Sprintf("%s: %d samples were dropped for newer ones", room, n)
				})
			}
			stop := y.flood(t, addr)
			full("little room")
			if policy != "drop_oldest" {
				text := page(t, c.telemetry)
				assert.Positive(t, metric(t, text, "otelcol_exporter_remotewrite_storage_failures"))
				assert.Positive(t, metric(t, text, "otelcol_exporter_enqueue_failed_metric_points"))
				assert.Zero(t, dropped(), "what was refused is not lost")
			}

			require.NoError(t, os.Remove(others))
			y.progress(t)
			y.clearRefusals()
			full("some room")

			server.Always(rwserver.Step{})
			y.progress(t)
			stop()
			wait.Until(t, delivery, func() (bool, string) {
				left := c.metric(t, "otelcol_exporter_queue_size")
				return left == 0, fmt.Sprintf("%v bytes are still queued", left)
			})
			lost := dropped()
			missing, example := y.missing(y.mark())
			assert.LessOrEqual(t, missing, lost, example) // dropped samples may include some that were never acknowledged
			if policy == "drop_oldest" {
				assert.Contains(t, page(t, c.telemetry), `reason="queue_full"`)
			}
			assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
			assert.NotContains(t, c.Output(), "panic:")
			assert.Equal(t, strings.Count(c.Output(), "the storage of the queue fails;"), strings.Count(c.Output(), "the storage of the queue works again"))
			assert.Empty(t, server.Violations())
			t.Logf("%d samples acknowledged, %d dropped, %d arrived again", y.acknowledged(), lost, y.sound(t))
		})
	}
}
