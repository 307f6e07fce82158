// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/report"
)

const (
	wireTargets  = 200
	wireInterval = 5 * time.Second
	wireScrapes  = 4
)

// hop is one way for metrics from a farm of node_exporter pages.
type hop struct {
	row     report.StreamWire
	front   *collector
	back    *collector
	network *child
}

// wire measures the bytes of metrics on the wire: agents scrape the same farm and send to a Collector through a proxy
// that counts. Bytes do not depend on the machine's speed, so all run at once, and only once.
func (s *Suite) wire(ctx context.Context, r *report.Stream) (err error) {
	targets := filepath.Join(s.dir, "targets.json")
	farm, err := startChild(s.dir, "farm", s.bench, "farm", "-page", "node", "-bodies", "gzip", "-change", "0.3",
		"-targets", fmt.Sprint(wireTargets), "-node-page", filepath.Join(s.Root, "testdata", "pages", "node.txt"),
		"-targets-file", targets)
	if err != nil {
		return err
	}
	defer farm.stop()
	var ready json.RawMessage
	if err := farm.line(&ready); err != nil {
		return err
	}
	var hops []*hop
	for _, batch := range []bool{false, true} {
		for _, exporter := range []string{otlp, otlpStream} {
			hops = append(hops, &hop{row: report.StreamWire{Exporter: exporter, Batched: batch, Targets: wireTargets}})
		}
	}
	defer func() {
		for _, h := range hops {
			h.stop()
		}
	}()
	for i, h := range hops {
		if err := s.startHop(ctx, h, i, targets); err != nil {
			return err
		}
	}
	select {
	case <-time.After(wireScrapes * wireInterval / time.Duration(s.Shrink)):
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, h := range hops {
		if err := h.finish(ctx); err != nil {
			return err
		}
		r.Wire = append(r.Wire, h.row)
		s.Out("metrics over %s, batched %v: %.2f B a data point", h.row.Exporter, h.row.Batched, h.row.PerPoint())
	}
	return nil
}

func (s *Suite) startHop(ctx context.Context, h *hop, number int, targets string) (err error) {
	name := func(part string) string { return fmt.Sprintf("wire-%s-%d", part, number) }
	endpoint, err := freePort()
	if err != nil {
		return err
	}
	h.back, err = s.startConfigured(ctx, s.Collector, name("back"), endpoint, "metrics",
		fmt.Sprintf("%s: {protocols: {grpc: {endpoint: %s}}}", h.row.Exporter, endpoint), "", "nop: {}")
	if err != nil {
		return err
	}
	var to string
	if h.network, to, err = startNetwork(s.dir, s.bench, endpoint, 0); err != nil {
		return err
	}
	processor := ""
	if h.row.Batched {
		processor = "batch: {send_batch_size: 8192, send_batch_max_size: 8192, timeout: 1s}"
	}
	interval := wireInterval / time.Duration(s.Shrink)
	scrape := fmt.Sprintf("fastprometheus: {config: {global: {scrape_interval: %v, scrape_timeout: %v}, "+
		"scrape_configs: [{job_name: farm, file_sd_configs: [{files: [%q]}]}]}}", interval, interval, targets)
	h.front, err = s.startConfigured(ctx, s.Collector, name("front"), "", "metrics", scrape, processor, exporterTo(h.row.Exporter, to, ""))
	return err
}

// finish waits until all scrapes have arrived, and reads the counters.
func (h *hop) finish(ctx context.Context) error {
	h.front.stop()
	h.front = nil
	points, err := h.back.accepted(ctx, "metric_points")
	if err != nil {
		return err
	}
	var at where
	h.network.terminate()
	if err := h.network.line(&at); err != nil {
		return err
	}
	h.row.Points, h.row.Bytes = points, at.Sent
	if points == 0 {
		return fmt.Errorf("no metrics arrived over %s", h.row.Exporter)
	}
	return nil
}

func (h *hop) stop() {
	var all sync.WaitGroup
	for _, c := range []*collector{h.front, h.back} {
		if c != nil {
			all.Go(c.stop)
		}
	}
	if h.network != nil {
		all.Go(h.network.stop)
	}
	all.Wait()
}
