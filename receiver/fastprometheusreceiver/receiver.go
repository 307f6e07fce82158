// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/client_golang/prometheus"
	promconfig "github.com/prometheus/prometheus/config"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/internal/owned"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/allocator"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/api"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/discover"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/metadata"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/schedule"
)

// lastScrapes is how many targets are scraped at a time on shutdown.
const lastScrapes = 256

// A scraper is the receiver.
type scraper struct {
	jobTable

	cfg       *Config // with limits for what the user has not limited
	limits    limits
	settings  receiver.Settings
	next      consumer.Metrics
	obsreport *receiverhelper.ObsReport
	telemetry *metadata.TelemetryBuilder
	counters  counters

	shard   discover.Shard
	reuse   bool
	changes handback.Changes // what must be restored if memory is used again
	unread  bool             // attributes of points may be left out until asked for
	later   bool             // metrics come back after the pipeline has returned
	host    string

	source   *discover.Source
	clock    *schedule.Clock
	slots    *slots
	learners *learners
	backlog  *backlog // in the pipeline
	buffers  buffers
	gate     *gate
	refusals refusals
	skips    skips
	fetching context.Context // ends when the receiver stops fetching
	stop     context.CancelFunc
	sending  context.Context // ends when Shutdown runs out of time
	abort    context.CancelFunc
	watch    sync.WaitGroup

	behind func(host component.Host, receiver component.ID) paths // pathsBehind, except in tests without a graph

	dial func(ctx context.Context, network, address string) (net.Conn, error) // nil: the network

	unregister func() // of what is shown
	tap        inspect.Tap

	api      *api.Server          // nil if it is not enabled
	registry *prometheus.Registry // what the API serves as metrics

	allocator *allocator.Client // nil if there is none
	offers    chan offer
	following context.Context // ends when the receiver stops following the allocator
	unfollow  context.CancelFunc
}

func newReceiver(cfg *Config, set receiver.Settings, next consumer.Metrics) (*scraper, error) {
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: "http", ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot set up telemetry: %w", err)
	}
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("cannot set up telemetry: %w", err)
	}
	limits := newLimits(cfg, memlimit.Available())
	r := &scraper{
		cfg: limits.applied(cfg), limits: limits, settings: set, next: next, obsreport: obsreport, telemetry: telemetry,
		shard:    discover.Shard{Members: cfg.Sharding.Members, Index: cfg.Sharding.Index, Replication: cfg.Sharding.Replication},
		jobTable: jobTable{jobs: map[string]*job{}},
		skips:    skips{log: set.Logger},
		offers:   make(chan offer),
		registry: prometheus.NewRegistry(),
		buffers:  buffers{most: limits.bodies},

		unregister: func() {},
		behind:     pathsBehind,
	}
	r.host, _ = os.Hostname() // without a name, only the spread suffers
	r.fetching, r.stop = context.WithCancel(context.Background())
	r.following, r.unfollow = context.WithCancel(context.Background())
	r.sending, r.abort = context.WithCancel(context.Background())
	return r, nil
}

// Start begins to discover and scrape. It returns errors of the configuration that show only now.
func (r *scraper) Start(ctx context.Context, host component.Host) error {
	r.decideReuse(host)
	r.gate = newGate(r.behind(host, r.settings.ID))
	r.backlog = &backlog{most: backlogShare.Of(memlimit.Available())}
	r.slots = newSlots(runtime.GOMAXPROCS(0), r.backlog)
	r.learners = newLearners(runtime.GOMAXPROCS(0), learningShare.Of(memlimit.Available()))

	watched, err := r.cfg.read()
	if err != nil {
		return err
	}
	source, err := discover.NewSource(r.settings.Logger, r.registerer(), r.divides)
	if err != nil {
		return err
	}
	r.source = source
	r.clock = schedule.New(r.cfg.MaxConcurrentScrapes)
	if err := errors.Join(r.newAllocator(ctx, host), r.begin(watched.jobs), r.observe()); err != nil {
		return errors.Join(err, r.Shutdown(context.Background()))
	}
	if err := r.serve(ctx, host); err != nil {
		return errors.Join(err, r.Shutdown(context.Background()))
	}
	f := follower{scraper: r, current: watched}
	r.watch.Go(f.run)
	if r.allocator != nil {
		r.source.Watch(r.allocator.Refresh(), r.allocator.Place(), r.allocator.Members)
		r.watch.Go(r.allocate)
	}
	r.unregister = inspect.Register(host, r.inspection())
	return nil
}

// begin applies the configuration's own jobs.
func (r *scraper) begin(own []*promconfig.ScrapeConfig) error {
	s, err := r.prepare(own, allocator.Answer{})
	if err != nil {
		return err
	}
	return r.apply(s)
}

// deliver hands a target's metrics to the pipeline, those of a large page part by part, and releases the slot. What the
// pipeline refuses is lost, with the parts that would follow.
func (r *scraper) deliver(t *target, result page.Result, slot *slot) {
	if result.Metrics.DataPointCount() == 0 && result.Pending() == 0 {
		slot.release()
		result.Release()
		return
	}
	result = result.Send()
	err := r.hand(t, result, slot)
	for pending := result.Pending(); err == nil && pending > 0; pending = result.Pending() {
		slot = t.takeSlot(begun)
		if err = r.sending.Err(); err != nil { // nobody waits for the other parts any more
			slot.release()
			r.lose(pending, err)
			break
		}
		result = result.Next()
		err = r.hand(t, result, slot)
		if err == nil && result.Pending() >= pending {
			err = errNoParts
			r.lose(pending, err)
		}
	}
	if err != nil {
		result.Recall()
		r.refuse(t, err) // without Release: whoever refuses metrics may still retry them
	} else {
		result.Release()
		r.take(t)
	}
}

// lastWait is how long a shutdown waits for a pipeline that does not take the last scrapes. Waiting for a full queue
// would block the process for ever, since exporters are stopped after receivers and the Collector sets no deadline.
const lastWait = 5 * time.Second

// giveUpWait is how long it then waits for the pipeline to return after its context was cancelled.
const giveUpWait = time.Second

// hand hands on the current metrics of the result, and releases the slot. If they are refused, the parts to come count
// as refused, too.
func (r *scraper) hand(t *target, result page.Result, slot *slot) (err error) {
	points := result.Metrics.DataPointCount()
	before := t.enter(phasePipeline)
	t.last.Store(int32(phasePipeline))
	slot.lend(weigh(result, points), func() {
		ctx := r.obsreport.StartMetricsOp(r.sending)
		// A shutdown that is out of time also ends the parts of a page, even if the pipeline ignores its context.
		if err = r.sending.Err(); err == nil && points > 0 {
			if r.tap.IsOpen() {
				result.Settle()
				r.tap.Metrics(result.Metrics)
			}
			err = owned.Metrics(handback.Lend(ctx, result.Loan(), result.Metrics), r.next, result.Metrics)
		}
		if err != nil {
			points += result.Pending()
			r.counters.lost.Add(int64(points))
		} else {
			r.counters.handed.Add(int64(points))
		}
		r.obsreport.EndMetricsOp(ctx, "prometheus", points, err)
	})
	t.enter(before)
	return err
}

// errNoParts ends a page whose remaining parts are missing although they were announced.
var errNoParts = errors.New("cannot make metrics of the rest of the page")

// lose counts points that are not handed on.
func (r *scraper) lose(points int, err error) {
	r.counters.lost.Add(int64(points))
	r.obsreport.EndMetricsOp(r.obsreport.StartMetricsOp(r.sending), "prometheus", points, err)
}

// Shutdown stops scraping. Scrapes that are being fetched are dropped; those already fetched are handed on, within ctx
// and lastWait.
func (r *scraper) Shutdown(ctx context.Context) error {
	defer r.telemetry.Shutdown()
	defer r.abort()
	defer r.stop()
	r.unfollow()
	if r.source == nil {
		return nil
	}
	r.unregister()
	err := r.api.Shutdown(ctx)
	r.source.Close()
	r.watch.Wait()
	waiting, cancel := context.WithTimeout(ctx, lastWait)
	defer cancel()
	defer context.AfterFunc(waiting, r.abort)()
	if r.cfg.ScrapeOnShutdown {
		r.scrapeOnce(waiting)
	}
	r.stop()
	hangUp := (*target).close
	if r.clock.Stop(waiting) != nil {
		r.abort()
		giveUp, cancel := context.WithTimeout(context.Background(), giveUpWait)
		defer cancel()
		if r.clock.Stop(giveUp) != nil {
			hangUp = (*target).hangUp // the others do so when they return
			r.settings.Logger.Warn("The pipeline has not returned by the end of the shutdown: the receiver no longer waits for it")
		}
		if ctx.Err() != nil {
			err = errors.Join(err, fmt.Errorf("cannot hand on the last scrapes: %w", ctx.Err()))
		} else {
			r.settings.Logger.Warn("The pipeline does not accept the last scrapes: they are lost", zap.Duration("waited", lastWait))
		}
	}
	for _, j := range r.allJobs() {
		for _, t := range j.all() {
			hangUp(t)
		}
		j.tools.client.Close()
	}
	return errors.Join(err, r.closeLogs())
}

// scrapeOnce scrapes all targets now, as far as possible within ctx.
func (r *scraper) scrapeOnce(ctx context.Context) {
	defer context.AfterFunc(ctx, r.stop)()
	if r.fetching.Err() != nil {
		return // it has stopped already
	}
	places := make(chan struct{}, lastScrapes)
	for _, j := range r.allJobs() {
		for _, t := range j.halt() {
			select {
			case places <- struct{}{}:
			case <-ctx.Done():
				return
			}
			r.clock.Once(0, func(at time.Time) {
				t.scrapeLast(at)
				<-places
			})
		}
	}
	for range lastScrapes {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// plans returns how many plans there are and the memory they take.
func (r *scraper) plans() (count, size int64) {
	seen := map[*page.Job]bool{}
	for _, j := range r.allJobs() {
		j.mu.Lock()
		p := j.tools.page
		j.mu.Unlock()
		if seen[p] {
			continue
		}
		seen[p] = true
		stats := p.Stats()
		count += int64(stats.Plans)
		size += stats.Bytes
	}
	return count, size
}

// seedOf makes replicas with the same configuration scrape a job's targets at different times. Members that share
// targets scrape each at the same time, wherever they run: a target that moves keeps its rhythm.
func (r *scraper) seedOf(job *promconfig.ScrapeConfig) uint64 {
	divided := r.cfg.Sharding.Members > 1 && r.cfg.Sharding.Replication <= 1
	host := r.host
	if divided || r.divides(job) {
		host = ""
	}
	return xxhash.Sum64String(host + r.cfg.Prometheus.external().String())
}
