// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
)

// collector is a running distribution with a test's own configuration.
type collector struct {
	*process.Process

	// health and telemetry are the URLs of its pages.
	health, telemetry string
}

// collectorFrame is the part of the configuration that all tests share.
const collectorFrame = `
extensions:
  health_check: {endpoint: %s}
service:
  extensions: [health_check]
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d, without_type_suffix: true}}}}]}}
`

// startCollector starts the agent with these configurations, merged in order, and waits until it has started all of its
// components.
func startCollector(t *testing.T, configs ...string) *collector {
	t.Helper()
	return startDistribution(t, "godwit-agent", configs...)
}

// startDistribution is startCollector for a named distribution.
func startDistribution(t *testing.T, name string, configs ...string) *collector {
	t.Helper()
	return startUnder(t, nil, name, configs...)
}

// startUnder runs a distribution under another command, such as a limiter.
func startUnder(t *testing.T, under []string, name string, configs ...string) *collector {
	t.Helper()
	return startCommand(t, append(slices.Clone(under), process.Binary(t, name)), configs...)
}

// startBinary runs a binary that was not built from this tree.
func startBinary(t *testing.T, path string, configs ...string) *collector {
	t.Helper()
	return startCommand(t, []string{path}, configs...)
}

func startCommand(t *testing.T, command []string, configs ...string) *collector {
	t.Helper()
	health, telemetry := freeport.Addr(t), freeport.Get(t)
	c := &collector{health: "http://" + health + "/", telemetry: fmt.Sprintf("http://127.0.0.1:%d/metrics", telemetry)}
	for _, config := range append([]string{fmt.Sprintf(collectorFrame, health, telemetry)}, configs...) {
		command = append(command, "--config", configFile(t, config))
	}
	c.Process = process.Start(t, process.Settings{Path: command[0], Args: command[1:]})
	c.ready()
	return c
}

func (c *collector) ready() { c.WaitHTTP(firstWords, c.health, nil) }

// metric returns the sum of the series of one of the collector's own metrics.
func (c *collector) metric(t *testing.T, name string) float64 {
	t.Helper()
	return metric(t, page(t, c.telemetry), name)
}
