// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
)

const gatewayConfig = "distributions/godwit-gateway/config.yaml"

// gateway is godwit-gateway on its shipped configuration, but for the ports and a
// destination that is tried again sooner.
type gateway struct {
	*process.Process

	// data is the folder of the queues; grpc and http are where it takes OTLP.
	data, grpc, http string
	// health and telemetry are pages it serves.
	health, telemetry string
}

const gatewayOverlay = `
receivers:
  otlpstream: {protocols: {grpc: {endpoint: %s}, http: {endpoint: %s}}}
  remotewrite: {endpoint: %s}
exporters:
  otlp_grpc: {retry_on_failure: {initial_interval: 100ms, max_interval: 500ms}}
extensions:
  health_check: {endpoint: %s}
  console: {endpoint: %s}
service:
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d, without_type_suffix: true}}}}]}}
`

// gatewaySettings are what else a test changes. The zero value changes nothing.
type gatewaySettings struct {
	// config is laid over the shipped one.
	config string
	// under is a command that runs the one that follows it.
	under []string
	// data is the folder of the queues; default one that is not there yet.
	data string
}

// startGateway starts a gateway and waits until it takes data.
func startGateway(t *testing.T, destination string, set gatewaySettings) *gateway {
	t.Helper()
	dir := t.TempDir()
	g := &gateway{data: set.data, grpc: freeport.Addr(t), http: freeport.Addr(t)}
	if g.data == "" {
		g.data = filepath.Join(dir, "data")
	}
	health, telemetry := freeport.Addr(t), freeport.Get(t)
	g.health, g.telemetry = "http://"+health+"/", fmt.Sprintf("http://127.0.0.1:%d/metrics", telemetry)
	args := []string{
		"--config", filepath.Join(repository.Root(t), gatewayConfig),
		"--config", configFile(t, fmt.Sprintf(gatewayOverlay, g.grpc, g.http, freeport.Addr(t), health, freeport.Addr(t), telemetry)),
	}
	if set.config != "" {
		args = append(args, "--config", configFile(t, set.config))
	}
	command := append(append([]string{}, set.under...), process.Binary(t, "godwit-gateway"))
	command = append(command, args...)
	g.Process = process.Start(t, process.Settings{
		Path: command[0], Args: command[1:], Dir: dir,
		Env: []string{"GODWIT_DATA=" + g.data, "GODWIT_OTLP_ENDPOINT=" + destination},
	})
	g.ready()
	return g
}

// ready waits until the gateway takes data: receivers start when all else has.
func (g *gateway) ready() { g.WaitHTTP(firstWords, g.health, nil) }

// queueFiles lists the files of the queues on disk.
func (g *gateway) queueFiles() []string {
	files, _ := filepath.Glob(filepath.Join(g.data, "exporter_otlp_grpc_*"))
	return files
}

// countsRefusals checks that its own metrics tell of log records and spans that
// found no place in the queue.
func (g *gateway) countsRefusals(t *testing.T, atLeast int) {
	t.Helper()
	text := page(t, g.telemetry)
	assert.GreaterOrEqual(t, metric(t, text, "otelcol_exporter_enqueue_failed_log_records")+
		metric(t, text, "otelcol_exporter_enqueue_failed_spans"), float64(atLeast))
}
