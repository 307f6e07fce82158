// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"

	"github.com/godwit-otel/godwit/benchmarks/report"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver"
)

// Network adds this latency in each direction on the way to an address. It returns the address to connect to.
type Network func(to string, delay time.Duration) (addr string, stop func(), err error)

// Run measures a cell in this process: prepared batches go from an exporter to a receiver and are counted there. The
// clock stops when the last one is acknowledged.
func (c *Cell) Run(ctx context.Context, network Network) (_ *report.StreamRun, err error) {
	v, err := c.variant()
	if err != nil {
		return nil, err
	}
	arrived := &counter{}
	addr, stopServer, err := v.startServer(ctx, arrived)
	if err != nil {
		return nil, err
	}
	defer stopServer()
	if delay := c.Point.Delay(); delay > 0 {
		via, stop, err := network(addr, delay)
		if err != nil {
			return nil, err
		}
		defer stop()
		addr = via
	}
	client, err := v.startClient(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Shutdown(context.WithoutCancel(ctx)) }()

	load := batches(c.Point.Items, c.Point.Attributes)
	// From here on, connections and streams are open, and windows have grown.
	if err := send(ctx, client, load, min(v.Callers, c.Batches), v.Callers); err != nil {
		return nil, err
	}
	before := arrived.items.Load()
	if c.Profile != "" {
		f, err := os.Create(c.Profile)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
		defer pprof.StopCPUProfile()
	}
	runtime.GC()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // resets the peak
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	cpu, start := cpuTime(0), time.Now()
	if err := send(ctx, client, load, c.Batches, v.Callers); err != nil {
		return nil, err
	}
	r := &report.StreamRun{Batches: c.Batches, Wall: time.Since(start).Seconds(), CPU: cpuTime(0) - cpu}
	runtime.ReadMemStats(&m1)
	r.Allocated = int64(m1.TotalAlloc - m0.TotalAlloc)
	r.RSSPeak, r.Files = memoryOf(0)
	if got, want := arrived.items.Load()-before, int64(c.Batches*c.Point.Items); got != want {
		return nil, fmt.Errorf("%d spans arrived, %d were sent", got, want)
	}
	return r, nil
}

// send exports n batches, callers at a time, and returns once all are acknowledged.
func send(ctx context.Context, client exporter.Traces, load []ptrace.Traces, n, callers int) error {
	var next atomic.Int64
	var first sync.Once
	var failed error
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := client.ConsumeTraces(ctx, load[i%int64(len(load))]); err != nil {
					first.Do(func() { failed = fmt.Errorf("cannot deliver batch %d: %w", i, err) })
					return
				}
			}
		})
	}
	done.Wait()
	return failed
}

// counter is the end of a pipeline.
type counter struct{ items atomic.Int64 }

func (*counter) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (c *counter) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	c.items.Add(int64(td.SpanCount()))
	return nil
}

func (v *Variant) startServer(ctx context.Context, to consumer.Traces) (addr string, stop func(), err error) {
	addr, err = freePort()
	if err != nil {
		return "", nil, err
	}
	protocol := "grpc"
	if v.websocket {
		protocol = "http"
	}
	conf := map[string]any{"protocols": map[string]any{protocol: map[string]any{"endpoint": addr}}}
	maps.Copy(conf, v.server)
	f := otlpstreamreceiver.NewFactory()
	if v.Party != "" {
		f = otlpreceiver.NewFactory()
	}
	cfg := f.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(conf).Unmarshal(cfg); err != nil {
		return "", nil, fmt.Errorf("cannot configure the receiver: %w", err)
	}
	r, err := f.CreateTraces(ctx, receiver.Settings{
		ID: component.NewID(f.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, cfg, to)
	if err == nil {
		err = r.Start(ctx, componenttest.NewNopHost())
	}
	if err != nil {
		return "", nil, fmt.Errorf("cannot start the receiver: %w", err)
	}
	return addr, func() { _ = r.Shutdown(context.WithoutCancel(ctx)) }, nil
}

func (v *Variant) startClient(ctx context.Context, addr string) (exporter.Traces, error) {
	endpoint := addr
	if v.websocket {
		endpoint = "http://" + addr
	}
	conf := map[string]any{
		"endpoint": endpoint, "tls": map[string]any{"insecure": true}, "compression": "none",
		"sending_queue": map[string]any{"enabled": false},
	}
	f := otlpstreamexporter.NewFactory()
	if v.Party != "" {
		f = otlpexporter.NewFactory()
		conf["timeout"] = "1m"
	}
	maps.Copy(conf, v.client)
	cfg := f.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(conf).Unmarshal(cfg); err != nil {
		return nil, fmt.Errorf("cannot configure the exporter: %w", err)
	}
	e, err := f.CreateTraces(ctx, exporter.Settings{
		ID: component.NewID(f.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, cfg)
	if err == nil {
		err = e.Start(ctx, componenttest.NewNopHost())
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start the exporter: %w", err)
	}
	return e, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a free port: %w", err)
	}
	defer l.Close()
	return "127.0.0.1:" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}
