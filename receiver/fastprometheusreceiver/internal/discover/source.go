// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	_ "github.com/prometheus/prometheus/plugins" // registers the discovery mechanisms that the build tags choose
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"github.com/godwit-otel/godwit/internal/memlimit"
)

// Groups are the target groups of each job.
type Groups = map[string][]*targetgroup.Group

// An Update says what the groups of some jobs are.
type Update struct {
	Groups Groups

	// At is the time from which on they apply, if members have agreed on one, else zero.
	At time.Time

	// Orphans says that a member has gone, and that new targets here may have been its. When these were last scraped is
	// not known.
	Orphans bool
}

// A Source runs the discovery mechanisms of a set of jobs.
type Source struct {
	manager *discovery.Manager
	metrics *discovery.SDMetrics
	divided func(job *config.ScrapeConfig) bool
	told    chan Update // of jobs whose targets are divided
	updates chan Update
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup
	members members // among which targets are divided

	mu    sync.Mutex
	turns map[string]bool // jobs whose targets are divided
}

// NewSource starts with no jobs. Close stops it. The mechanisms insist on a registry of their own metrics, not shared
// with another source. Jobs for which divided returns true have one mechanism, an HTTP server that divides their
// targets among members; divided may be nil.
func NewSource(logger *zap.Logger, registry prometheus.Registerer, divided func(job *config.ScrapeConfig) bool) (*Source, error) {
	metrics, err := discovery.CreateAndRegisterSDMetrics(registry)
	if err != nil {
		return nil, fmt.Errorf("cannot register service discovery: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	// A mechanism's stack trace says nothing that its error does not, whatever the collector's logger says of traces.
	log := slog.New(newWithoutRepeats(zapslog.NewHandler(logger.Core(), zapslog.AddStacktraceAt(math.MaxInt))))
	// Over HTTP/2 no write is a request, so that the size of one answer could not be counted.
	manager := discovery.NewManager(ctx, log, registry, metrics, discovery.HTTPClientOptions(
		commonconfig.WithDialContextFunc(bounded((&net.Dialer{}).DialContext, answerShare.Of(memlimit.Available()))),
		commonconfig.WithHTTP2Disabled(),
	))
	if manager == nil {
		cancel()
		return nil, errors.New("cannot create the discovery manager: the log says why")
	}
	s := &Source{
		manager: manager, metrics: metrics, divided: divided, ctx: ctx, cancel: cancel,
		told: make(chan Update), updates: make(chan Update),
	}
	s.done.Go(func() { _ = manager.Run() }) // returns the context's error, which is our own
	s.done.Go(s.join)
	return s, nil
}

// Apply makes the source follow these jobs and no others. Mechanisms that are configured as before keep running.
func (s *Source) Apply(jobs []*config.ScrapeConfig) error {
	configs := make(map[string]discovery.Configs, len(jobs))
	turns := map[string]bool{}
	for _, job := range jobs {
		mechanisms := job.ServiceDiscoveryConfigs
		if s.divided != nil && s.divided(job) {
			turns[job.JobName] = true
			mechanisms = s.askedInRounds(mechanisms)
		}
		configs[job.JobName] = distinguish(mechanisms)
	}
	s.mu.Lock()
	s.turns = turns
	s.mu.Unlock()
	if err := s.manager.ApplyConfig(configs); err != nil {
		return fmt.Errorf("cannot apply service discovery: %w", err)
	}
	return nil
}

// Updates delivers groups each time some change. It is closed by Close.
func (s *Source) Updates() <-chan Update {
	return s.updates
}

// tell sends updates of mechanisms that the manager runs, without passing through it.
func (s *Source) tell(ctx context.Context, u Update) {
	select {
	case s.told <- u:
	case <-ctx.Done():
	}
}

// join merges the manager's updates with those of divided jobs. Like the manager, it repeats the groups of all jobs
// after a change of the configuration.
func (s *Source) join() {
	defer close(s.updates)
	latest := Groups{}
	for {
		var u Update
		select {
		case groups, open := <-s.manager.SyncCh():
			if !open {
				return
			}
			s.mu.Lock()
			maps.DeleteFunc(latest, func(job string, _ []*targetgroup.Group) bool { return !s.turns[job] })
			for job := range s.turns {
				delete(groups, job)
			}
			s.mu.Unlock()
			maps.Copy(groups, latest)
			u.Groups = groups
		case u = <-s.told:
			maps.Copy(latest, u.Groups)
		}
		select {
		case s.updates <- u:
		case <-s.ctx.Done():
		}
	}
}

// Close stops all mechanisms.
func (s *Source) Close() {
	s.cancel()
	s.done.Wait()
}
