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

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/internal/redact"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/allocator"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/api"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/discover"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/metadata"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/schedule"
)

// lastScrapes is how many targets are scraped at a time on shutdown.
const lastScrapes = 256

// A scraper is the receiver. What it scrapes is in its job table, which discovery and changes of the configuration
// update through a follower. The clock calls each target when it is due; the target fetches its page, reads it within a
// slot, and gives the metrics to the delivery.
type scraper struct {
	jobTable

	cfg       *Config // with limits for what the user has not limited
	limits    limits
	settings  receiver.Settings
	telemetry *metadata.TelemetryBuilder
	counters  counters

	shard      discover.Shard
	host       string
	source     *discover.Source
	allocation allocation
	reuse      reuse

	clock    *schedule.Clock
	slots    *slots
	learners *learners
	backlog  *backlog // in the pipeline
	room     *page.Room
	buffers  buffers
	skips    skips
	out      delivery
	fetching context.Context // ends when the receiver stops fetching
	stop     context.CancelFunc
	watch    sync.WaitGroup

	unregister func()               // of what is shown
	api        *api.Server          // nil if it is not enabled
	registry   *prometheus.Registry // what the API serves as metrics

	// Replaced in tests.
	behind func(host component.Host, receiver component.ID) paths               // pathsBehind: tests have no graph
	dial   func(ctx context.Context, network, address string) (net.Conn, error) // nil: the network
}

func newReceiver(cfg *Config, set receiver.Settings, next consumer.Metrics) (*scraper, error) {
	set.Logger = redact.Logger(set.Logger)
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
		cfg: limits.applied(cfg), limits: limits, settings: set, telemetry: telemetry,
		shard:      discover.Shard{Members: cfg.Sharding.Members, Index: cfg.Sharding.Index, Replication: cfg.Sharding.Replication},
		jobTable:   jobTable{jobs: map[string]*job{}},
		allocation: newAllocation(),
		skips:      skips{log: set.Logger},
		registry:   prometheus.NewRegistry(),
		buffers:    buffers{most: limits.bodies},
		room:       page.NewRoom(limits.series),

		unregister: func() {},
		behind:     pathsBehind,
	}
	r.host, _ = os.Hostname() // without a name, only the spread suffers
	r.fetching, r.stop = context.WithCancel(context.Background())
	r.out.init(set, obsreport, next)
	return r, nil
}

// Start begins to discover and scrape. It returns errors of the configuration that show only now.
func (r *scraper) Start(ctx context.Context, host component.Host) error {
	r.reuse = decideReuse(host, r.settings, r.cfg.Reuse, r.out.next.Capabilities().MutatesData)
	r.out.refusals.gate = newGate(r.behind(host, r.settings.ID))
	r.backlog = &backlog{most: backlogShare.Of(memlimit.Available())}
	r.slots = newSlots(runtime.GOMAXPROCS(0), r.backlog)
	r.learners = newLearners(runtime.GOMAXPROCS(0), learningShare.Of(memlimit.Available()))

	watched, err := r.cfg.read()
	if err != nil {
		return err
	}
	source, err := discover.NewSource(r.settings.Logger, r.registerer(), r.allocation.divides)
	if err != nil {
		return err
	}
	r.source = source
	r.clock = schedule.New(r.cfg.MaxConcurrentScrapes)
	if err := errors.Join(r.connect(ctx, host), r.begin(watched.jobs), instruments{r}.register()); err != nil {
		return errors.Join(err, r.Shutdown(context.Background()))
	}
	if err := r.serve(ctx, host); err != nil {
		return errors.Join(err, r.Shutdown(context.Background()))
	}
	f := follower{scraper: r, current: watched}
	r.watch.Go(f.run)
	if allocator := r.allocation.client; allocator != nil {
		r.source.Watch(allocator.Refresh(), allocator.Place(), allocator.Members)
		r.watch.Go(r.allocation.run)
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

// lastWait is how long a shutdown waits for a pipeline that does not take the last scrapes. Waiting for a full queue
// would block the process for ever, since exporters are stopped after receivers and the Collector sets no deadline.
const lastWait = 5 * time.Second

// giveUpWait is how long it then waits for the pipeline to return after its context was cancelled.
const giveUpWait = time.Second

// Shutdown stops scraping. Scrapes that are being fetched are dropped; those already fetched are handed on, within ctx
// and lastWait.
func (r *scraper) Shutdown(ctx context.Context) error {
	defer r.telemetry.Shutdown()
	defer r.out.abort()
	defer r.stop()
	r.allocation.end()
	if r.source == nil {
		return nil
	}
	r.unregister()
	err := r.api.Shutdown(ctx)
	r.source.Close()
	r.watch.Wait()
	waiting, cancel := context.WithTimeout(ctx, lastWait)
	defer cancel()
	defer context.AfterFunc(waiting, r.out.abort)()
	if r.cfg.ScrapeOnShutdown {
		r.scrapeOnce(waiting)
	}
	r.stop()
	hangUp := (*target).close
	if r.clock.Stop(waiting) != nil {
		r.out.abort()
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

// seedOf makes replicas with the same configuration scrape a job's targets at different times. Members that share
// targets scrape each at the same time, wherever they run: a target that moves keeps its rhythm.
func (r *scraper) seedOf(job *promconfig.ScrapeConfig) uint64 {
	divided := r.cfg.Sharding.Members > 1 && r.cfg.Sharding.Replication <= 1
	host := r.host
	if divided || r.allocation.divides(job) {
		host = ""
	}
	return xxhash.Sum64String(host + r.cfg.Prometheus.external().String())
}
