// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// With a full disk the gateway refuses data and says so; once there is space again it goes on. It makes no promise
// about the queue meanwhile: see its README.
func TestGatewayOutlivesAFullDisk(t *testing.T) {
	t.Parallel()
	for _, disk := range fullDisks {
		t.Run(disk.name, func(t *testing.T) {
			data := t.TempDir()
			destination := otlpserver.New(t, otlpserver.Options{})
			destination.Always(otlpserver.Step{Code: codes.Unavailable})
			g := startGateway(t, destination.GRPCAddr(), gatewaySettings{data: data, under: disk.under(t, data, 4096)})
			l := &ledger{padding: 5000}
			conn := dial(t, g.grpc)
			l.fill(t, conn, 100, disk.says)
			g.countsRefusals(t, 100*perRequest)

			destination.Always(otlpserver.Step{})
			fresh := &ledger{next: 1e6}
			wait.Until(t, delivery, func() (bool, string) {
				err := fresh.send(t.Context(), conn)
				return err == nil && fresh.acknowledged() >= 10*perRequest, fmt.Sprint(err)
			})
			wait.Until(t, delivery, fresh.arrived(destination))
			_, kept := l.arrived(destination)()
			t.Log("when the disk was full: ", kept)
			assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
			assert.NotContains(t, g.Output(), "panic:")
		})
	}
}

// The ways in which a disk can be full, and the error of each.
var fullDisks = []struct {
	name, says string
	// under returns a command prefix that limits folder to so many KiB.
	under func(t *testing.T, folder string, kib int) []string
}{
	{"file system without space", "no space left on device", func(t *testing.T, folder string, kib int) []string {
		t.Helper()
		return smallDisk(t, folder, fmt.Sprintf("%dk", kib))
	}},
	{"limit of file size", "file too large", func(_ *testing.T, _ string, kib int) []string {
		return []string{"sh", "-c", fmt.Sprintf(`ulimit -f %d && exec "$@"`, 2*kib), "sh"} // the unit is a sector
	}},
}

// smallDisk returns a command prefix that mounts a file system of this size at folder.
func smallDisk(t *testing.T, folder, size string) []string {
	t.Helper()
	mount := func(then ...string) []string {
		return append([]string{"unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=` + size + ` none "$0" && exec "$@"`, folder}, then...)
	}
	probe := mount("true")
	if out, err := exec.CommandContext(t.Context(), probe[0], probe[1:]...).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a file system of one's own here: %v: %s", err, out)
	}
	return mount()
}

// The gateway never takes an unreadable queue for an empty one: it does not start with it, leaves it unchanged, and
// starts once it is removed.
func TestGatewayStopsAtADamagedQueue(t *testing.T) {
	f := func(name, want string, damage func([]byte) []byte) {
		t.Run(name, func(t *testing.T) {
			destination := otlpserver.New(t, otlpserver.Options{})
			destination.Always(otlpserver.Step{Code: codes.Unavailable})
			g := startGateway(t, destination.GRPCAddr(), gatewaySettings{})
			l, conn := &ledger{padding: 300}, dial(t, g.grpc)
			for range 100 {
				require.NoError(t, l.send(t.Context(), conn))
			}
			g.Kill()
			files := g.queueFiles()
			require.Len(t, files, 2, "one for logs, one for traces")
			var damaged [][]byte
			for _, file := range files {
				b, err := os.ReadFile(file)
				require.NoError(t, err)
				b = damage(b)
				require.NoError(t, os.WriteFile(file, b, 0o600))
				damaged = append(damaged, b)
			}

			g.Restart()
			assert.NotZero(t, g.Wait(commandTimeout))
			assert.Contains(t, g.Output(), want)
			for i, file := range files {
				b, err := os.ReadFile(file)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(damaged[i], b), "%s was changed", file)
				require.NoError(t, os.Rename(file, filepath.Join(g.Dir(), filepath.Base(file))))
			}

			destination.Always(otlpserver.Step{})
			g.Restart()
			g.ready()
			fresh := &ledger{next: 1e6}
			require.NoError(t, fresh.send(t.Context(), dial(t, g.grpc)))
			wait.Until(t, delivery, fresh.arrived(destination))
			assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
		})
	}
	metas := 2 * os.Getpagesize() // the first two pages of bbolt describe the rest
	f("no head", `exporters::otlp_grpc: cannot start: invalid database`, func(b []byte) []byte {
		copy(b, bytes.Repeat([]byte{0xaa}, metas))
		return b
	})
	// The half of a file may be valid: the rest could be free pages.
	f("cut off", "go.etcd.io/bbolt", func(b []byte) []byte { return b[:metas] })
	f("no body", "go.etcd.io/bbolt", func(b []byte) []byte {
		copy(b[metas:], bytes.Repeat([]byte{0xaa}, len(b)))
		return b
	})
}
