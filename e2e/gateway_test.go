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

// gateway is godwit-gateway with its shipped configuration, except for ports and shorter retry intervals.
type gateway struct {
	*process.Process

	// data is the directory of the queues; grpc and http are the addresses for OTLP.
	data, grpc, http string
	// health and telemetry are the URLs of its pages.
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

// gatewaySettings are further changes of a test. The zero value changes nothing.
type gatewaySettings struct {
	// config is merged into the shipped one.
	config string
	// under is a command prefix.
	under []string
	// data is the directory of the queues; by default a new one.
	data string
}

// startGateway starts a gateway and waits until it accepts data.
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

// ready waits until the gateway accepts data: receivers start last.
func (g *gateway) ready() { g.WaitHTTP(firstWords, g.health, nil) }

// queueFiles returns the files of the queues on disk.
func (g *gateway) queueFiles() []string {
	files, _ := filepath.Glob(filepath.Join(g.data, "exporter_otlp_grpc_*"))
	return files
}

// countsRefusals checks that its metrics count the log records and spans that the full queue refused.
func (g *gateway) countsRefusals(t *testing.T, atLeast int) {
	t.Helper()
	text := page(t, g.telemetry)
	assert.GreaterOrEqual(t, metric(t, text, "otelcol_exporter_enqueue_failed_log_records")+
		metric(t, text, "otelcol_exporter_enqueue_failed_spans"), float64(atLeast))
}
