// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/godwit-otel/godwit/benchmarks/report"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// One Collector sends to another, by otlp or by otlpstream. All other settings are the same, and the defaults.

// paced are sizes of requests with the rate per second at which CPU time is measured, for which less than a core is
// needed.
var paced = []struct{ items, rate int }{{1, 2000}, {10, 2000}, {100, 500}, {1000, 50}}

// flooded are the sizes of requests that are sent as fast as possible, with the largest latency.
var flooded = []int{100, 1000}

const (
	farAway  = 200 // round trip in milliseconds
	attached = 10  // attributes per span

	otlp       = "otlp"
	otlpStream = "otlpstream"
)

func (s *Suite) pipelines(ctx context.Context, r *report.Stream) error {
	for _, compression := range []string{"", "none"} {
		for _, p := range paced {
			for _, exporter := range []string{otlp, otlpStream} {
				r.Pipelines = append(r.Pipelines, report.StreamPipeline{
					Exporter: exporter, Compression: compression, Items: p.items, Offered: p.rate,
				})
			}
		}
	}
	for _, items := range flooded {
		for _, exporter := range []string{otlp, otlpStream} {
			r.Pipelines = append(r.Pipelines, report.StreamPipeline{Exporter: exporter, Items: items, RTT: farAway})
		}
	}
	loads := map[int][]byte{}
	for _, p := range r.Pipelines {
		if loads[p.Items] == nil {
			data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(batches(p.Items, attached)[0])
			if err != nil {
				return fmt.Errorf("cannot make a request: %w", err)
			}
			loads[p.Items] = data
		}
	}
	pairs := map[route]*pair{}
	defer func() {
		for _, p := range pairs {
			p.stop()
		}
	}()
	// All pairs run during all measurements; an idle pair costs almost nothing.
	for i := range r.Pipelines {
		way := routeOf(&r.Pipelines[i])
		if pairs[way] != nil {
			continue
		}
		var err error
		if pairs[way], err = s.startPair(ctx, way); err != nil {
			return err
		}
	}
	for range s.Repeats {
		for i := range r.Pipelines {
			p := &r.Pipelines[i]
			run, err := s.pipeline(ctx, pairs[routeOf(p)], p, loads[p.Items])
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				s.Out("  pipeline over %s, %d spans a request FAILED: %v", p.Exporter, p.Items, err)
				p.Failed = append(p.Failed, err.Error())
				continue
			}
			p.Runs = append(p.Runs, *run)
			s.Out("pipeline over %s %s, %d spans a request, %d ms: %.0f spans/s, %.2f µs of CPU a span", p.Exporter,
				p.Compression, p.Items, p.RTT, run.Rate(), run.CPUPerItem())
		}
	}
	return nil
}

// route identifies a pair.
type route struct {
	exporter, compression string
	rtt                   int
}

func (w route) name(part string) string {
	return fmt.Sprintf("%s-%s-%s-%d", part, w.exporter, w.compression, w.rtt)
}

func routeOf(p *report.StreamPipeline) route { return route{p.Exporter, p.Compression, p.RTT} }

// pair is two Collectors and the network between them.
type pair struct {
	front, back *collector
	network     *child
	// sent is the number of spans that the first one has accepted so far.
	sent int64
}

func (p *pair) stop() {
	for _, c := range []*collector{p.front, p.back} {
		if c != nil {
			c.stop()
		}
	}
	if p.network != nil {
		p.network.stop()
	}
}

func (s *Suite) startPair(ctx context.Context, way route) (_ *pair, err error) {
	both := &pair{}
	defer func() {
		if err != nil {
			both.stop()
		}
	}()
	if both.back, err = s.startCollector(ctx, way.name("back"), way.exporter, "nop: {}"); err != nil {
		return nil, err
	}
	to := both.back.endpoint
	if way.rtt > 0 {
		delay := time.Duration(way.rtt) * time.Millisecond / 2
		if both.network, to, err = startNetwork(s.dir, s.bench, to, delay); err != nil {
			return nil, err
		}
	}
	both.front, err = s.startCollector(ctx, way.name("front"), otlp, exporterTo(way.exporter, to, way.compression))
	return both, err
}

func (s *Suite) pipeline(ctx context.Context, both *pair, p *report.StreamPipeline, load []byte) (*report.StreamPipelineRun, error) {
	cc, err := grpc.NewClient(both.front.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("cannot reach the first Collector: %w", err)
	}
	defer cc.Close()
	gen := &generator{cc: cc, load: load}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	stop := sync.OnceFunc(func() { cancel(); running.Wait() })
	defer stop()
	warm, window := time.Second, 3*time.Second
	if p.Offered > 0 {
		running.Go(func() { gen.pace(ctx, p.Offered) })
	} else {
		warm, window = 3*time.Second, 4*time.Second
		running.Go(func() { gen.flood(ctx) })
	}
	begin, err := both.after(ctx, warm/time.Duration(s.Shrink))
	if err != nil {
		return nil, err
	}
	both.front.forgetPeak()
	both.back.forgetPeak()
	end, err := both.after(ctx, window/time.Duration(s.Shrink))
	if err != nil {
		return nil, err
	}
	stop()
	sent, sentFiles := both.front.memory()
	taken, takenFiles := both.back.memory()
	run := &report.StreamPipelineRun{
		Seconds: end.at.Sub(begin.at).Seconds(), Items: end.items - begin.items,
		Sender: end.front - begin.front, Receiver: end.back - begin.back,
		SentRSS: sent, TakenRSS: taken, SentFiles: sentFiles, TakenFiles: takenFiles,
	}
	both.sent += gen.taken.Load() * int64(p.Items)
	if err := both.complete(); err != nil {
		return nil, err
	}
	if p.Offered > 0 && gen.refused.Load() > 0 {
		return nil, fmt.Errorf("%d requests were refused: the machine is too slow, or too busy", gen.refused.Load())
	}
	return run, nil
}

// moment is the progress of a pair at a time.
type moment struct {
	at          time.Time
	items       int64
	front, back float64
}

func (p *pair) after(ctx context.Context, d time.Duration) (m moment, err error) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return m, ctx.Err()
	}
	m.at, m.front, m.back = time.Now(), p.front.cpu(), p.back.cpu()
	m.items, err = p.back.accepted(context.WithoutCancel(ctx), "spans")
	return m, err
}

// complete waits until all accepted spans have arrived.
func (p *pair) complete() error {
	var arrived int64
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var err error
		if arrived, err = p.back.accepted(context.Background(), "spans"); err != nil || arrived >= p.sent {
			return err
		}
	}
	defer func() { p.sent = arrived }() // so that the next measurement does not fail too
	return fmt.Errorf("%d spans were taken, only %d arrived", p.sent, arrived)
}

// generator sends the same encoded request repeatedly.
type generator struct {
	cc   *grpc.ClientConn
	load []byte

	taken, refused atomic.Int64
}

// send sends one request. It completes even if ctx is cancelled, because it must be counted.
func (g *generator) send(ctx context.Context) bool {
	var response otlpstream.Raw
	err := g.cc.Invoke(context.WithoutCancel(ctx), otlpstream.Traces.OTLPMethod(), otlpstream.Raw(g.load), &response,
		grpc.ForceCodecV2(otlpstream.Codec()))
	if err != nil {
		g.refused.Add(1)
		return false
	}
	g.taken.Add(1)
	return true
}

const senders = 32

// pace sends this many requests per second, a few at a time.
func (g *generator) pace(ctx context.Context, rate int) {
	const tick = 5 * time.Millisecond
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	work := make(chan struct{}, rate) // up to a second's worth may queue
	var running sync.WaitGroup
	for range senders {
		running.Go(func() {
			for range work {
				g.send(ctx)
			}
		})
	}
	begun, due := time.Now(), 0
	for ctx.Err() == nil {
		<-ticks.C
		for target := int(time.Since(begun).Seconds() * float64(rate)); due < target; due++ {
			select {
			case work <- struct{}{}:
			default: // it cannot keep up, but the results are per item
			}
		}
	}
	close(work)
	running.Wait()
}

// flood sends as fast as requests are accepted.
func (g *generator) flood(ctx context.Context) {
	var running sync.WaitGroup
	for range senders {
		running.Go(func() {
			for ctx.Err() == nil {
				if !g.send(ctx) {
					time.Sleep(20 * time.Millisecond) // the queue is full
				}
			}
		})
	}
	running.Wait()
}

// exporterTo configures an exporter; all other settings are the defaults.
func exporterTo(name, to, compression string) string {
	more := ""
	if compression != "" {
		more = ", compression: " + compression
	}
	if name == otlp {
		name = "otlp_grpc"
	}
	return fmt.Sprintf("%s: {endpoint: %s, tls: {insecure: true}%s}", name, to, more)
}
