// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// collector is a running Collector.
type collector struct {
	*child

	endpoint string // of its receiver
	metrics  string // of its own telemetry
}

// startCollector starts bin/godwit with one receiver and one exporter, and waits until its receiver listens.
func (s *Suite) startCollector(ctx context.Context, name, receiver, exporter string) (*collector, error) {
	endpoint, err := freePort()
	if err != nil {
		return nil, err
	}
	return s.startConfigured(ctx, s.Collector, name, endpoint, "traces",
		fmt.Sprintf("%s: {protocols: {grpc: {endpoint: %s}}}", receiver, endpoint), "", exporter)
}

// startConfigured starts a build with a pipeline. Without an endpoint it waits only for its telemetry.
func (s *Suite) startConfigured(ctx context.Context, build, name, endpoint, signal, receiver, processor, exporter string) (*collector, error) {
	metrics, err := freePort()
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(metrics)
	first := func(component string) string {
		key, _, _ := strings.Cut(component, ":")
		return key
	}
	config := fmt.Sprintf(`receivers: {%s}
processors: {%s}
exporters: {%s}
service:
  telemetry:
    logs: {level: error}
    metrics: {level: basic, readers: [{pull: {exporter: {prometheus: {host: %s, port: %s}}}}]}
  pipelines: {%s: {receivers: [%s], processors: [%s], exporters: [%s]}}
`, receiver, processor, exporter, host, port, signal, first(receiver), first(processor), first(exporter))
	file := filepath.Join(s.dir, name+".yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("cannot configure a Collector: %w", err)
	}
	p, err := startChild(s.dir, name, build, "--config", file)
	if err != nil {
		return nil, err
	}
	c := &collector{child: p, endpoint: endpoint, metrics: metrics}
	for _, address := range []string{endpoint, metrics} {
		if address == "" {
			continue
		}
		if err := waitFor(ctx, address); err != nil {
			c.stop()
			return nil, fmt.Errorf("%s does not start: %w\n%s", name, err, c.tail())
		}
	}
	return c, nil
}

func waitFor(ctx context.Context, address string) error {
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		var c net.Conn
		if c, err = net.Dial("tcp4", address); err == nil {
			return c.Close()
		}
	}
	return errors.Join(err, ctx.Err())
}

// accepted returns how many items its receiver has accepted: spans or metric_points.
func (c *collector) accepted(ctx context.Context, what string) (int64, error) {
	return c.sum(ctx, "otelcol_receiver_accepted_"+what)
}

// sum returns the sum of the series of one of its own metrics.
func (c *collector) sum(ctx context.Context, metric string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.metrics+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("cannot ask a Collector what it has taken: %w", err)
	}
	defer resp.Body.Close()
	sum := 0.0
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line := lines.Text(); strings.HasPrefix(line, metric) {
			v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				return 0, fmt.Errorf("cannot read %q: %w", line, err)
			}
			sum += v
		}
	}
	return int64(sum), lines.Err()
}
