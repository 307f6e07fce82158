// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
)

// collector is godwit-agent on a configuration of the test's own.
type collector struct {
	*process.Process

	// health and telemetry are pages it serves.
	health, telemetry string
}

// What every configuration of a test has besides what it is about.
const collectorFrame = `
extensions:
  health_check: {endpoint: %s}
service:
  extensions: [health_check]
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d, without_type_suffix: true}}}}]}}
`

// startCollector starts the agent on configurations, each laid over the one before,
// and waits until it has started all of its components.
func startCollector(t *testing.T, configs ...string) *collector {
	t.Helper()
	health, telemetry := freeport.Addr(t), freeport.Get(t)
	c := &collector{health: "http://" + health + "/", telemetry: fmt.Sprintf("http://127.0.0.1:%d/metrics", telemetry)}
	var args []string
	for _, config := range append([]string{fmt.Sprintf(collectorFrame, health, telemetry)}, configs...) {
		args = append(args, "--config", configFile(t, config))
	}
	c.Process = process.Start(t, process.Settings{Path: process.Binary(t, "godwit-agent"), Args: args})
	c.ready()
	return c
}

func (c *collector) ready() { c.WaitHTTP(firstWords, c.health, nil) }

// metric is the sum of the series of one of its own metrics.
func (c *collector) metric(t *testing.T, name string) float64 {
	t.Helper()
	return metric(t, page(t, c.telemetry), name)
}
