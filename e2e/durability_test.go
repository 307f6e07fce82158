// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc/codes"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	crashes = 4
	// The number of items acknowledged before the next crash.
	perLife = 2000
	// The longest time until a queue is delivered, on a busy machine.
	delivery = 4 * time.Minute
)

func TestGatewayKeepsWhatItAcknowledgedThroughCrashes(t *testing.T) {
	t.Parallel()
	addr := freeport.Addr(t) // nobody listens there yet
	g := startGateway(t, addr, gatewaySettings{})
	l := &ledger{padding: 100}
	live := func(end func()) {
		before, stop := l.acknowledged(), l.flood(t, g.grpc)
		wait.Until(t, delivery, func() (bool, string) {
			return l.acknowledged() >= before+perLife, fmt.Sprintf("%d of %d acknowledged", l.acknowledged()-before, perLife)
		})
		end() // while requests are in flight
		stop()
	}
	for range crashes {
		live(g.Kill)
		g.Restart()
		g.ready()
	}
	live(func() { assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime), "it waits for no destination that is down") })

	destination := otlpserver.New(t, otlpserver.Options{GRPCAddr: addr})
	destination.Always(otlpserver.Step{Delay: 5 * time.Millisecond}) // so that the next crash comes during delivery
	g.Restart()
	g.ready()
	live(g.Kill)
	g.Restart()
	wait.Until(t, delivery, l.arrived(destination))
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))

	more, there := 0, numbers(destination)
	for number, times := range there {
		assert.Less(t, number, l.next, "nobody sent it")
		more += times - 1
	}
	t.Logf("%d acknowledged, %d arrived, %d more than once", l.acknowledged(), len(there), more)
}

func TestGatewayRefusesWhenItsQueueIsFull(t *testing.T) {
	t.Parallel()
	destination := otlpserver.New(t, otlpserver.Options{})
	destination.Always(otlpserver.Step{Code: codes.Unavailable})
	g := startGateway(t, destination.GRPCAddr(), gatewaySettings{
		config: "exporters: {otlp_grpc: {sending_queue: {queue_size: 100000}}}",
	})
	l := &ledger{padding: 1000}
	conn := dial(t, g.grpc)
	l.fill(t, conn, 10, "queue is full")
	assert.Less(t, l.acknowledged(), 2*2*100_000/l.padding, "the limit is that of each signal")
	assert.Equal(t, http.StatusServiceUnavailable, postLogs(t, g, l), "the same over HTTP")
	g.countsRefusals(t, 11*perRequest)

	destination.Always(otlpserver.Step{})
	wait.Until(t, delivery, func() (bool, string) { // the sender retries
		err := l.send(t.Context(), conn)
		return err == nil, fmt.Sprint(err)
	})
	wait.Until(t, delivery, l.arrived(destination))
	assert.Zero(t, g.Stop(syscall.SIGTERM, drainTime))
}

// postLogs sends logs by OTLP/HTTP and returns the response's status.
func postLogs(t *testing.T, g *gateway, l *ledger) int {
	t.Helper()
	body, err := plogotlp.NewExportRequestFromLogs(l.logs(0)).MarshalProto()
	require.NoError(t, err)
	client := http.Client{Timeout: firstWords, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post("http://"+g.http+"/v1/logs", "application/x-protobuf", bytes.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	return resp.StatusCode
}

// The shipped configuration never stops retrying. An outage can last longer than a test can wait.
func TestGatewayNeverGivesUpWhatIsQueued(t *testing.T) {
	exit, output := command(t, "godwit-gateway", configEnv(t), "print-config", "--config", filepath.Join(repository.Root(t), gatewayConfig))
	require.Zero(t, exit, output)
	var shown struct {
		Exporters struct {
			OTLP struct {
				Retry struct {
					Enabled    bool          `yaml:"enabled"`
					MaxElapsed time.Duration `yaml:"max_elapsed_time"`
				} `yaml:"retry_on_failure"`
				Queue struct {
					Storage string `yaml:"storage"`
				} `yaml:"sending_queue"`
			} `yaml:"otlp_grpc"`
			RemoteWrite struct {
				Retry struct {
					MaxElapsed time.Duration `yaml:"max_elapsed_time"`
				} `yaml:"retry"`
				Queue struct {
					Directory string        `yaml:"directory"`
					FSync     bool          `yaml:"fsync"`
					OnFull    string        `yaml:"on_full"`
					MaxAge    time.Duration `yaml:"max_age"`
				} `yaml:"queue"`
			} `yaml:"remotewrite"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(output), &shown))
	assert.True(t, shown.Exporters.OTLP.Retry.Enabled)
	assert.Zero(t, shown.Exporters.OTLP.Retry.MaxElapsed, "after that time queued data is dropped")
	assert.Equal(t, "file_storage", shown.Exporters.OTLP.Queue.Storage)
	metrics := shown.Exporters.RemoteWrite
	assert.Zero(t, metrics.Retry.MaxElapsed, "after that time queued data is dropped")
	assert.Zero(t, metrics.Queue.MaxAge, "at that age queued data is dropped")
	assert.Equal(t, "block", metrics.Queue.OnFull)
	assert.NotEmpty(t, metrics.Queue.Directory)
	assert.True(t, metrics.Queue.FSync, "it survives the machine")
}
