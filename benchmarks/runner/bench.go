// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package runner runs agents one after the other on the same work, and measures them from outside: their processes, and
// what arrives.
package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/distance"
	"github.com/godwit-otel/godwit/benchmarks/farm"
	"github.com/godwit-otel/godwit/benchmarks/report"
	"github.com/godwit-otel/godwit/benchmarks/sink"
)

// Job is the work of all agents.
type Job struct {
	Farm farm.Config
	// About says in reports what is special about the work.
	About string
	// Scrape are further lines of the scrape configuration.
	Scrape   []string
	Interval time.Duration
	// Intervals is the length of the window in scrape intervals.
	Intervals int
	// RTT is the round trip to the destination; 0 if it is near.
	RTT time.Duration
}

// Bench holds the processes for one job.
type Bench struct {
	job      Job
	root     string
	dir      string
	farm     instrument
	sink     instrument
	page     farmReady
	sinkAt   sinkReady
	networks []*distance.Proxy
	yard     *yardstick
	stop     chan struct{}
	progress func(format string, args ...any)
	// patience is how long served samples may take to arrive.
	patience time.Duration
}

// Open starts the farm and the sink as processes. Open and Run must be called from a goroutine that is locked to the
// main thread.
func Open(ctx context.Context, root string, job Job, progress func(format string, args ...any)) (_ *Bench, err error) {
	b := &Bench{job: job, root: root, progress: progress, patience: 20 * time.Second}
	if b.yard, err = newYardstick(filepath.Join(root, "testdata", "pages", "node.txt")); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "godwit-bench-"); err != nil {
		return nil, fmt.Errorf("cannot make a scratch directory: %w", err)
	}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find the bench's own binary: %w", err)
	}
	f := job.Farm
	progress("%d targets, page %s: rendering", f.Targets, f.Page)
	cfg, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("cannot tell the farm what to serve: %w", err)
	}
	if b.farm.process, err = start("farm", b.dir, self, []string{"farm", "-targets-file", b.targets(), "-config", string(cfg)}, true); err != nil {
		return nil, err
	}
	if b.sink.process, err = start("sink", b.dir, self, []string{"sink"}, true); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := errors.Join(ready(ctx, b.farm.process, &b.page), ready(ctx, b.sink.process, &b.sinkAt)); err != nil {
		return nil, fmt.Errorf("%w\n%s%s", err, lastLines(b.farm.log), lastLines(b.sink.log))
	}
	b.farm.control, b.sink.control = b.page.Control, b.sinkAt.Control
	progress("a page has %d samples, %d bytes, %d gzipped", b.page.Samples, b.page.Bytes, b.page.Gzipped)
	if job.RTT > 0 {
		if err := b.moveAway(job.RTT); err != nil {
			return nil, err
		}
	}
	b.stop = make(chan struct{})
	go b.yard.run(b.stop)
	return b, nil
}

// moveAway adds a round-trip time between agents and the sink.
func (b *Bench) moveAway(rtt time.Duration) error {
	for _, addr := range []*string{&b.sinkAt.HTTP, &b.sinkAt.GRPC} {
		p, err := distance.NewProxy(*addr, rtt/2)
		if err != nil {
			return err
		}
		b.networks = append(b.networks, p)
		*addr = p.Addr()
	}
	return nil
}

// Close stops the farm and the sink, and removes temporary files.
func (b *Bench) Close() {
	if b.stop != nil {
		close(b.stop)
	}
	b.farm.stop(time.Second)
	b.sink.stop(time.Second)
	for _, n := range b.networks {
		n.Close()
	}
	os.RemoveAll(b.dir)
}

func (b *Bench) targets() string { return filepath.Join(b.dir, "targets.json") }

// Workload describes the job for reports.
func (b *Bench) Workload() report.Workload {
	f := b.job.Farm
	return report.Workload{
		Page: f.Page, About: b.job.About, Bodies: f.Bodies, Targets: f.Targets, Interval: b.job.Interval.Seconds(),
		RTT:    b.job.RTT.Seconds(),
		Window: b.job.Interval.Seconds() * float64(b.job.Intervals),
		Change: f.Change, Churn: f.Churn, Cardinality: f.Cardinality,
		Samples: b.page.Samples, Bytes: b.page.Bytes, Gzipped: b.page.Gzipped,
	}
}

// reading is the state of all processes at one time.
type reading struct {
	at              time.Time
	cpu, farm, sink float64
	yard            float64
	units           int
	stats           sink.Stats
	scraped         int64
}

func (b *Bench) read(ctx context.Context, a *Agent, agent *process) (r reading, err error) {
	if err := agent.alive(); err != nil {
		return r, err
	}
	var t farm.Totals
	if err := errors.Join(b.sink.ask(ctx, "stats", &r.stats), b.farm.ask(ctx, "totals", &t)); err != nil {
		return r, err
	}
	r.scraped = t.Samples
	if a.Silent {
		r.stats.Samples = t.Samples // in place of those that would arrive
	}
	r.at = time.Now()
	r.yard, r.units = b.yard.reading()
	for process, into := range map[*process]*float64{agent: &r.cpu, b.farm.process: &r.farm, b.sink.process: &r.sink} {
		if *into, err = process.cpu(); err != nil {
			return r, err
		}
	}
	return r, nil
}

// Run measures one agent once.
func (b *Bench) Run(ctx context.Context, a *Agent) (*report.Run, error) {
	binary, missing := a.binary(b.root)
	if missing != "" {
		return nil, fmt.Errorf("cannot run %s: %s", a.Name, missing)
	}
	interval := b.job.Interval
	ctx, cancel := context.WithTimeout(ctx, time.Duration(b.job.Intervals+8)*interval+90*time.Second)
	defer cancel()
	for _, i := range []*instrument{&b.farm, &b.sink} {
		if err := i.ask(ctx, "reset", nil); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp(b.dir, a.Name+"-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a scratch directory: %w", err)
	}
	defer os.RemoveAll(dir)
	path, err := install(binary, dir)
	if err != nil {
		return nil, err
	}
	args, err := a.render(agentView{
		Config: filepath.Join(dir, "config.yaml"), Dir: dir, Targets: b.targets(), Interval: interval,
		SinkHTTP: b.sinkAt.HTTP, SinkGRPC: b.sinkAt.GRPC, Scrape: b.job.Scrape,
	})
	if err != nil {
		return nil, err
	}
	agent, err := start(a.Name, dir, path, args, false)
	if err != nil {
		return nil, err
	}
	defer agent.stop(10 * time.Second)

	b.progress("%s: warming up until each target was scraped twice", a.Name)
	if err := b.warmUp(ctx, agent); err != nil {
		return nil, err
	}
	before, err := b.edge(ctx, a, agent)
	if err != nil {
		return nil, err
	}
	window := interval * time.Duration(b.job.Intervals)
	b.progress("%s: measuring for %v", a.Name, window)
	memory, err := b.watch(ctx, agent, before.at.Add(window))
	if err != nil {
		return nil, err
	}
	after, err := b.edge(ctx, a, agent)
	if err != nil {
		return nil, err
	}
	if a.Silent {
		return b.sumSilent(ctx, before, after, memory)
	}
	account, err := b.settle(ctx, agent, after.at.UnixMilli())
	if err != nil {
		return nil, err
	}
	if log := lastLines(agent.log); !account.Complete() && log != "" {
		b.progress("%s: samples are missing, and its log ends with\n%s", a.Name, log)
	}
	return b.sum(ctx, before, after, memory, account)
}

// sumSilent returns the run of an agent that sends nothing. The agent must have scraped at least nine tenths of the
// window's samples; with few targets, one scrape of all of them may fall outside the window.
func (b *Bench) sumSilent(ctx context.Context, before, after reading, memory memory) (*report.Run, error) {
	run, err := b.sum(ctx, before, after, memory, Account{})
	if err != nil {
		return nil, err
	}
	var t farm.Totals
	if err := b.farm.ask(ctx, "totals", &t); err != nil {
		return nil, err
	}
	run.Unchecked, run.Scrapes = true, int(t.Scrapes)
	intervals := b.job.Intervals
	if b.job.Farm.Targets <= fewTargets {
		intervals--
	}
	if due := int64(b.job.Farm.Targets) * int64(b.page.Samples) * int64(intervals); run.Samples < due*9/10 {
		return nil, fmt.Errorf("cannot count it: %d samples were scraped in the window, of %d", run.Samples, due)
	}
	return run, nil
}

func (b *Bench) sum(ctx context.Context, before, after reading, memory memory, account Account) (*report.Run, error) {
	var totals farm.Totals
	var whole sink.Stats
	if err := errors.Join(b.farm.ask(ctx, "totals", &totals), b.sink.ask(ctx, "stats", &whole)); err != nil {
		return nil, err
	}
	run := &report.Run{
		Seconds: after.at.Sub(before.at).Seconds(),
		Samples: after.stats.Samples - before.stats.Samples, Scraped: after.scraped - before.scraped,
		CPU: after.cpu - before.cpu, Farm: after.farm - before.farm, Sink: after.sink - before.sink,
		Yard:    (after.yard - before.yard) / float64(max(1, after.units-before.units)),
		RSSMean: memory.rss / memory.looks, RSSPeak: memory.peak, AnonMean: memory.anon / memory.looks,
		Wire: after.stats.Wire - before.stats.Wire, Raw: after.stats.Raw - before.stats.Raw,
		Requests: after.stats.Requests - before.stats.Requests,
		Series:   whole.Series, Created: whole.Created, Own: whole.Own, Stale: whole.Stale, Exemplars: whole.Exemplars,
		Refused: whole.Failed, Aborted: totals.Aborted,
		Scrapes: account.Scrapes, Served: account.Served, Lost: account.Lost, Duplicated: account.Duplicated,
		Altered: account.Altered, Unknown: account.Unknown + whole.Strangers,
	}
	if n := after.stats.Durations - before.stats.Durations; n > 0 {
		run.ScrapeSeconds = (after.stats.Seconds - before.stats.Seconds) / float64(n)
	}
	return run, nil
}

// wait polls until done returns true, the agent ends, or the context does.
func wait(ctx context.Context, agent *process, every time.Duration, done func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if err := agent.alive(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// warmUp waits until each target was scraped twice.
func (b *Bench) warmUp(ctx context.Context, agent *process) error {
	var t farm.Totals
	limit := 4*b.job.Interval + 30*time.Second
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := wait(within, agent, 200*time.Millisecond, func() (bool, error) {
		err := b.farm.ask(within, "totals", &t)
		return t.Twice == b.job.Farm.Targets, err
	})
	if err != nil {
		return fmt.Errorf("cannot warm up within %v, %d of %d targets were scraped, %d twice: %w\n%s",
			limit, t.Targets, b.job.Farm.Targets, t.Twice, err, lastLines(agent.log))
	}
	return nil
}

// With few targets there are pauses between scrapes, and the window must not begin or end during a scrape. Many targets
// are scraped all the time, so that a window of whole intervals has the same work wherever it begins.
const fewTargets = 20

// edge takes a reading; with few targets it waits for a pause.
func (b *Bench) edge(ctx context.Context, a *Agent, agent *process) (reading, error) {
	if b.job.Farm.Targets <= fewTargets {
		within, cancel := context.WithTimeout(ctx, b.job.Interval)
		defer cancel()
		err := wait(within, agent, 100*time.Millisecond, func() (bool, error) {
			var t farm.Totals
			var s sink.Stats
			err := errors.Join(b.farm.ask(ctx, "totals", &t), b.sink.ask(ctx, "stats", &s))
			return t.InFlight == 0 && (a.Silent || s.Samples >= t.Samples), err
		})
		if err != nil && !errors.Is(err, context.DeadlineExceeded) { // an agent without pauses is read at any time
			return reading{}, err
		}
	}
	return b.read(ctx, a, agent)
}

// settle waits until what was served before a time has arrived, and compares.
func (b *Bench) settle(ctx context.Context, agent *process, until int64) (a Account, err error) {
	within, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	err = wait(within, agent, 500*time.Millisecond, func() (bool, error) {
		var served [][]farm.Scrape
		var arrived map[int][]sink.Group
		err := errors.Join(b.farm.ask(ctx, "served", &served), b.sink.ask(ctx, "arrived", &arrived))
		a = compare(served, arrived, until, b.job.Interval.Milliseconds())
		return a.Complete(), err
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil // incomplete, which is a result, too
	}
	return a, err
}

// memory holds an agent's memory in the window: sums over all readings, and the peak.
type memory struct{ rss, anon, peak, looks int64 }

// watch reads the agent's memory every second until a time.
func (b *Bench) watch(ctx context.Context, agent *process, until time.Time) (m memory, err error) {
	agent.forgetPeak()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	end := time.NewTimer(time.Until(until))
	defer end.Stop()
	for {
		if err := agent.alive(); err != nil {
			return m, err
		}
		rss, anon, peak := agent.memory()
		m.rss, m.anon, m.peak, m.looks = m.rss+rss, m.anon+anon, peak, m.looks+1
		select {
		case <-tick.C:
		case <-end.C:
			return m, nil
		case <-ctx.Done():
			return m, ctx.Err()
		}
	}
}
