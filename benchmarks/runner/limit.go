// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/benchmarks/limit"
	"github.com/godwit-otel/godwit/benchmarks/sink"
)

// LimitAgent is a contender that receives OTLP over HTTP at a path.
type LimitAgent struct {
	Agent `yaml:",inline"`

	Intake string `yaml:"intake"`
	// Intakes replaces Intake by a path for each shape. The agent does not run with other shapes.
	Intakes map[string]string `yaml:"intakes"`
}

// takes returns the path at which an agent receives a shape.
func (a *LimitAgent) takes(shape string) (path string, ok bool) {
	if a.Intakes == nil {
		return a.Intake, true
	}
	path, ok = a.Intakes[shape]
	return path, ok
}

// LoadLimitAgents reads all agents, sorted by name.
func LoadLimitAgents(dir string) ([]LimitAgent, error) {
	files, err := agentFiles(dir)
	if err != nil {
		return nil, err
	}
	var all []LimitAgent
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read agent: %w", err)
		}
		a := LimitAgent{Agent: Agent{Name: strings.TrimSuffix(filepath.Base(file), ".yaml")}}
		d := yaml.NewDecoder(bytes.NewReader(body))
		d.KnownFields(true)
		if err := d.Decode(&a); err != nil {
			return nil, fmt.Errorf("cannot read agent %s: %w", file, err)
		}
		all = append(all, a)
	}
	return all, nil
}

// SelectLimit returns agents as Select does.
func SelectLimit(all []LimitAgent, which string) ([]LimitAgent, error) {
	plain := make([]Agent, len(all))
	for i := range all {
		plain[i] = all[i].Agent
	}
	picked, err := Select(plain, which)
	var out []LimitAgent
	for _, p := range picked {
		i := slices.IndexFunc(all, func(a LimitAgent) bool { return a.Name == p.Name })
		out = append(out, all[i])
	}
	return out, err
}

// LimitSuite measures agents under loads.
type LimitSuite struct {
	Suite

	Name   string
	Title  string
	Agents []LimitAgent
	Cells  []limit.Cell
	WarmUp time.Duration
	Window time.Duration
}

// Replay is the main function of the load's process.
func Replay(ctx context.Context, shape string, rate int, page string) error {
	r, err := limit.NewReplay(shape, rate, page)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	stop := func() {}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /start", func(_ http.ResponseWriter, q *http.Request) {
		var replaying context.Context
		replaying, stop = context.WithCancel(ctx)
		running.Go(func() { r.Run(replaying, q.URL.Query().Get("url")) })
	})
	mux.HandleFunc("POST /stop", func(http.ResponseWriter, *http.Request) {
		stop()
		running.Wait()
	})
	mux.HandleFunc("GET /totals", answer(func() any { return r.Totals() }))
	control, err := serveControl(ctx, mux)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(sinkReady{Control: control}); err != nil {
		return err
	}
	<-ctx.Done()
	stop()
	running.Wait()
	return nil
}

// Run measures every agent in every cell. It must be called from a goroutine that is locked to the main thread.
func (s *LimitSuite) Run(ctx context.Context) (*limit.Result, error) {
	r := &limit.Result{
		Name: s.Name, Title: s.Title, Taken: time.Now().UTC().Truncate(time.Second), Command: s.Command, Machine: Machine(),
		Window: s.Window.Seconds(), WarmUp: s.WarmUp.Seconds(),
	}
	var present []LimitAgent
	for _, a := range s.Agents {
		if _, missing := a.binary(s.Root); missing != "" {
			r.Skipped = append(r.Skipped, a.Name+": "+missing)
			s.Out("skipping %s: %s", a.Name, missing)
			continue
		}
		present = append(present, a)
	}
	yard, err := newYardstick(filepath.Join(s.Root, "testdata", "pages", "node.txt"))
	if err != nil {
		return nil, err
	}
	stop := make(chan struct{})
	defer close(stop)
	go yard.run(stop)
	begun, done := time.Now(), 0
	for _, cell := range s.Cells {
		var able []LimitAgent
		var rows []limit.Row
		for _, a := range present {
			if _, ok := a.takes(cell.Shape); ok {
				path, _ := a.binary(s.Root)
				able = append(able, a)
				rows = append(rows, limit.Row{Cell: cell, Agent: a.Name, Title: a.Title, Party: a.Party, Version: version(path)})
			}
		}
		for range s.Repeats {
			for i := range able {
				done++
				s.Out("[%d/%d] %v %s %s", done, len(s.Cells)*len(present)*s.Repeats, time.Since(begun).Round(time.Second), cell, able[i].Name)
				run, err := s.measure(ctx, &able[i], cell, yard)
				if ctx.Err() != nil {
					return nil, errors.Join(ctx.Err(), err)
				}
				if err != nil {
					s.Out("  FAILED: %v", err) // the other runs still count
					rows[i].Failed = append(rows[i].Failed, err.Error())
					continue
				}
				rows[i].Runs = append(rows[i].Runs, *run)
				s.Out("  %s", run)
			}
		}
		r.Rows = append(r.Rows, rows...)
	}
	return r, nil
}

// limitBench holds the processes of one run.
type limitBench struct {
	load, sink instrument
	sinkAt     sinkReady
	agent      *process
	yard       *yardstick
}

func (s *LimitSuite) measure(ctx context.Context, a *LimitAgent, cell limit.Cell, yard *yardstick) (*limit.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, s.WarmUp+s.Window+90*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "godwit-bench-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a scratch directory: %w", err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find the bench's own binary: %w", err)
	}
	b := &limitBench{yard: yard}
	defer func() {
		b.load.stop(time.Second)
		b.sink.stop(time.Second)
	}()
	args := []string{
		"limit-load", "-shape", cell.Shape, "-rate", fmt.Sprint(cell.Rate), "-page", filepath.Join(s.Root, "testdata", "pages", "node.txt"),
	}
	if b.load.process, err = start("load", dir, self, args, true); err != nil {
		return nil, err
	}
	if b.sink.process, err = start("sink", dir, self, []string{"sink"}, true); err != nil {
		return nil, err
	}
	var loadAt sinkReady
	if err := errors.Join(ready(ctx, b.load.process, &loadAt), ready(ctx, b.sink.process, &b.sinkAt)); err != nil {
		return nil, fmt.Errorf("%w\n%s%s", err, lastLines(b.load.log), lastLines(b.sink.log))
	}
	b.load.control, b.sink.control = loadAt.Control, b.sinkAt.Control
	listen, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	binary, _ := a.binary(s.Root)
	path, err := install(binary, dir)
	if err != nil {
		return nil, err
	}
	rendered, err := a.render(agentView{
		Config: filepath.Join(dir, "config.yaml"), Dir: dir, SinkHTTP: b.sinkAt.HTTP, SinkGRPC: b.sinkAt.GRPC, Listen: listen,
	})
	if err != nil {
		return nil, err
	}
	if b.agent, err = start(a.Name, dir, path, rendered, false); err != nil {
		return nil, err
	}
	defer b.agent.stop(10 * time.Second)
	if err := wait(ctx, b.agent, 50*time.Millisecond, func() (bool, error) { return dial(ctx, listen), nil }); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, lastLines(b.agent.log))
	}
	intake, _ := a.takes(cell.Shape)
	return s.window(ctx, b, "http://"+listen+intake)
}

// window sends the load, and measures after the warm-up. Deliveries are counted over the whole run, after waiting for
// what is in flight.
func (s *LimitSuite) window(ctx context.Context, b *limitBench, to string) (*limit.Run, error) {
	if err := b.load.ask(ctx, "start?url="+url.QueryEscape(to), nil); err != nil {
		return nil, err
	}
	if err := pause(ctx, b.agent, s.WarmUp); err != nil {
		return nil, err
	}
	before, err := b.read(ctx)
	if err != nil {
		return nil, err
	}
	memory, err := (&Bench{}).watch(ctx, b.agent, before.at.Add(s.Window))
	if err != nil {
		return nil, err
	}
	after, err := b.read(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.load.ask(ctx, "stop", nil); err != nil {
		return nil, err
	}
	last, err := b.settle(ctx)
	if err != nil {
		return nil, err
	}
	return &limit.Run{
		Seconds: after.at.Sub(before.at).Seconds(), Points: points(&after.stats) - points(&before.stats),
		CPU: after.cpu - before.cpu, Load: after.load - before.load, Sink: after.sink - before.sink,
		Yard:    (after.yard - before.yard) / float64(max(1, after.units-before.units)),
		RSSMean: memory.rss / memory.looks, RSSPeak: memory.peak, Anon: memory.anon / memory.looks, Wire: after.stats.Wire - before.stats.Wire,
		Offered: after.totals.Points - before.totals.Points,
		Sent:    last.totals.Points, Healthy: last.totals.Healthy, Refused: last.totals.Refused, Late: last.totals.Late,
		Delivered: points(&last.stats), HealthyDelivered: last.stats.Samples, Series: last.stats.Series,
	}, nil
}

// points returns all points that arrived: of targets, of the explosion and of overflow series.
func points(s *sink.Stats) int64 { return s.Samples + s.Strangers }

// limitReading is the state of all processes at one time.
type limitReading struct {
	at              time.Time
	cpu, load, sink float64
	yard            float64
	units           int
	stats           sink.Stats
	totals          limit.Totals
}

func (b *limitBench) read(ctx context.Context) (r limitReading, err error) {
	if err := b.agent.alive(); err != nil {
		return r, err
	}
	if err := errors.Join(b.sink.ask(ctx, "stats", &r.stats), b.load.ask(ctx, "totals", &r.totals)); err != nil {
		return r, err
	}
	r.at = time.Now()
	r.yard, r.units = b.yard.reading()
	for process, into := range map[*process]*float64{b.agent: &r.cpu, b.load.process: &r.load, b.sink.process: &r.sink} {
		if *into, err = process.cpu(); err != nil {
			return r, err
		}
	}
	return r, nil
}

// settle waits until everything has arrived, or nothing has for a while.
func (b *limitBench) settle(ctx context.Context) (r limitReading, err error) {
	var before int64
	quiet := 0
	err = wait(ctx, b.agent, 250*time.Millisecond, func() (bool, error) {
		var err error
		if r, err = b.read(ctx); err != nil {
			return false, err
		}
		if quiet++; points(&r.stats) != before {
			before, quiet = points(&r.stats), 0
		}
		return points(&r.stats) >= r.totals.Points || quiet > 16, nil
	})
	return r, err
}

// pause waits for d, and fails if the agent ends.
func pause(ctx context.Context, agent *process, d time.Duration) error {
	until := time.Now().Add(d)
	return wait(ctx, agent, 50*time.Millisecond, func() (bool, error) { return time.Now().After(until), nil })
}

func dial(ctx context.Context, address string) bool {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp4", address)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

// freePort returns an address with a port that the kernel chose.
func freePort(ctx context.Context) (string, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
