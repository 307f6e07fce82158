// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/godwit-otel/godwit/benchmarks/report"
	"github.com/godwit-otel/godwit/internal/fleettest"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// Metrics in OTLP go from one Collector to another in one of the available encodings. The cost of the first Collector
// without an export is also measured, for each build, and subtracted: the rest is the cost of the encoding and the
// transport.

const (
	encodingTargets = 50
	encodingScrapes = 20
	// encodingBatch is the number of scrapes in a request with several.
	encodingBatch = 16
	// encodingPace is the rate of data points per second, for which less than a core is needed.
	encodingPace = 100_000
	// encodingShare is the share of values that change.
	encodingShare = 0.3
)

// way is an exporter with its receiver, and the Collector build with both.
type way struct{ name, exporter, receiver, build string }

// ways returns all ways; some export nothing. Those of others need a build that has them, in any version.
func (s *Suite) ways(to, endpoint string) []way {
	served := fmt.Sprintf("{protocols: {grpc: {endpoint: %s}}}", endpoint)
	client := func(more string) string { return fmt.Sprintf("{endpoint: %s, tls: {insecure: true}%s}", to, more) }
	all := []way{
		{report.EncodingNone, "nop: {}", "", s.Collector},
		{"otlp, gzip", "otlp_grpc: " + client(""), "otlp: " + served, s.Collector},
		{"otlp, zstd", "otlp_grpc: " + client(", compression: zstd"), "otlp: " + served, s.Collector},
		{report.EncodingOurs, "otlpstream: " + client(""), "otlpstream: " + served, s.Collector},
	}
	if s.Streams == "" {
		return all
	}
	return append(all,
		way{report.EncodingNoneOfOthers, "nop: {}", "", s.Streams},
		way{report.EncodingSTEF, "stef: " + client(", compression: zstd"), fmt.Sprintf("stef: {endpoint: %s}", endpoint), s.Streams},
		way{"otelarrow", "otelarrow: " + client(""), "otelarrow: " + served, s.Streams})
}

// scrapesOf encodes requests of this many scrapes each in OTLP.
func (s *Suite) scrapesOf(each int) (requests [][]byte, points []int, err error) {
	page, err := os.ReadFile(filepath.Join(s.Root, "testdata", "pages", "node.txt"))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the page: %w", err)
	}
	fleet := make([]*fleettest.Target, encodingTargets)
	for i := range fleet {
		fleet[i] = fleettest.New(string(page), i, encodingShare)
	}
	var request []byte
	inside, count := 0, 0
	flush := func() {
		if inside > 0 {
			requests, points = append(requests, request), append(points, count)
		}
		request, inside, count = nil, 0, 0
	}
	for n := range max(2, encodingScrapes/s.Shrink) {
		for i, target := range fleet {
			at := pcommon.Timestamp(1_700_000_000_000_000_000 + n*10_000_000_000 + i*37_123_456)
			data, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(target.Scrape(at))
			if err != nil {
				return nil, nil, fmt.Errorf("cannot encode a scrape: %w", err)
			}
			request, inside, count = append(request, data...), inside+1, count+target.Points()
			if inside == each {
				flush()
			}
		}
	}
	flush()
	return requests, points, nil
}

func (s *Suite) encodings(ctx context.Context, r *report.Stream) error {
	if s.Streams == "" {
		r.Skipped = append(r.Skipped, "encodings of others: STREAMS names no Collector that has stef and otelarrow")
	}
	for _, batched := range []bool{false, true} {
		for _, w := range s.ways("", "") {
			r.Encodings = append(r.Encodings, report.StreamEncoding{Name: w.name, Other: w.build != s.Collector, Batched: batched, Targets: encodingTargets})
		}
	}
	for range s.Repeats {
		for i := range r.Encodings {
			row := &r.Encodings[i]
			run, err := s.encoding(ctx, row)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				s.Out("  %s, batched %v FAILED: %v", row.Name, row.Batched, err)
				row.Failed = append(row.Failed, err.Error())
				continue
			}
			row.Runs = append(row.Runs, *run)
			s.Out("metrics as %s, batched %v: %.2f B a data point, %.0f + %.0f ns of CPU", row.Name, row.Batched, run.PerPoint(),
				1e9*run.Sender/float64(run.Points), 1e9*run.Receiver/float64(run.Points))
		}
	}
	return nil
}

func (s *Suite) encoding(ctx context.Context, row *report.StreamEncoding) (*report.StreamEncodingRun, error) {
	each := 1
	if row.Batched {
		each = encodingBatch
	}
	requests, points, err := s.scrapesOf(each)
	if err != nil {
		return nil, err
	}
	h, err := s.startEncoding(ctx, row.Name)
	if err != nil {
		return nil, err
	}
	defer h.stop()
	front, back := h.front.cpu(), 0.0
	if h.back != nil {
		back = h.back.cpu()
	}
	run := &report.StreamEncodingRun{}
	if run.Points, err = feed(ctx, h.front.endpoint, requests, points); err != nil {
		return nil, err
	}
	if h.back != nil {
		if err := arrive(ctx, h.back, run.Points); err != nil {
			return nil, err
		}
		run.Receiver = h.back.cpu() - back
	}
	run.Sender = h.front.cpu() - front
	if h.network == nil {
		return run, nil
	}
	h.front.stop()
	h.front = nil
	h.network.terminate()
	var at where
	err = h.network.line(&at)
	run.Bytes = at.Sent
	return run, err
}

func (s *Suite) startEncoding(ctx context.Context, name string) (h *hop, err error) {
	h = &hop{}
	defer func() {
		if err != nil {
			h.stop()
		}
	}()
	endpoint, err := freePort()
	if err != nil {
		return h, err
	}
	find := func(to string) way {
		for _, w := range s.ways(to, endpoint) {
			if w.name == name {
				return w
			}
		}
		return way{}
	}
	to := endpoint
	const limiter = "memory_limiter: {check_interval: 1s, limit_mib: 8000}" // it counts items, which not every receiver does
	if w := find(to); w.receiver != "" {
		if h.back, err = s.startConfigured(ctx, w.build, "encoding-back", endpoint, "metrics", w.receiver, limiter, "nop: {}"); err != nil {
			return h, err
		}
		if h.network, to, err = startNetwork(s.dir, s.bench, endpoint, 0); err != nil {
			return h, err
		}
	}
	in, err := freePort()
	if err != nil {
		return h, err
	}
	w := find(to)
	h.front, err = s.startConfigured(ctx, w.build, "encoding-front", in, "metrics",
		fmt.Sprintf("otlp: {protocols: {grpc: {endpoint: %s}}}", in), "", w.exporter)
	return h, err
}

// feed sends the requests one after the other at encodingPace, and returns their number of points.
func feed(ctx context.Context, to string, requests [][]byte, points []int) (sent int64, err error) {
	cc, err := grpc.NewClient(to, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return 0, fmt.Errorf("cannot reach the first Collector: %w", err)
	}
	defer cc.Close()
	begun := time.Now()
	for i, request := range requests {
		due := begun.Add(time.Duration(float64(sent) / encodingPace * float64(time.Second)))
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		var response otlpstream.Raw
		if err := cc.Invoke(ctx, otlpstream.Metrics.OTLPMethod(), otlpstream.Raw(request), &response, grpc.ForceCodecV2(otlpstream.Codec())); err != nil {
			return 0, fmt.Errorf("cannot send metrics: %w", err)
		}
		sent += int64(points[i])
	}
	return sent, nil
}

// arrive waits until this many points have arrived.
func arrive(ctx context.Context, at *collector, points int64) error {
	var got int64
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var err error
		if got, err = at.sum(ctx, "otelcol_processor_incoming_items"); err != nil || got >= points {
			return errors.Join(err, ctx.Err())
		}
	}
	return fmt.Errorf("%d data points were sent, %d arrived", points, got)
}
