// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"

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

// A Source runs the discovery mechanisms of a set of jobs.
type Source struct {
	manager *discovery.Manager
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// NewSource starts with no jobs. Close stops it. The mechanisms insist on a registry of metrics of their own kind, which
// must be no other source's.
func NewSource(logger *zap.Logger, registry prometheus.Registerer) (*Source, error) {
	metrics, err := discovery.CreateAndRegisterSDMetrics(registry)
	if err != nil {
		return nil, fmt.Errorf("cannot register service discovery: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	// With HTTP/2 nothing that is written is a request, so that an answer would have no beginning.
	manager := discovery.NewManager(ctx, slog.New(zapslog.NewHandler(logger.Core())), registry, metrics, discovery.HTTPClientOptions(
		commonconfig.WithDialContextFunc(bounded((&net.Dialer{}).DialContext, answerShare.Of(memlimit.Available()))),
		commonconfig.WithHTTP2Disabled(),
	))
	if manager == nil {
		cancel()
		return nil, errors.New("cannot create the discovery manager: the log says why")
	}
	s := &Source{manager: manager, cancel: cancel}
	s.done.Go(func() { _ = manager.Run() }) // returns the context's error, which is ours
	return s, nil
}

// Apply makes the source follow these jobs and no others. Mechanisms that are configured as before keep running.
func (s *Source) Apply(jobs []*config.ScrapeConfig) error {
	configs := make(map[string]discovery.Configs, len(jobs))
	for _, job := range jobs {
		configs[job.JobName] = distinguish(job.ServiceDiscoveryConfigs)
	}
	if err := s.manager.ApplyConfig(configs); err != nil {
		return fmt.Errorf("cannot apply service discovery: %w", err)
	}
	return nil
}

// Updates delivers all groups of all jobs each time some change. It is closed by Close.
func (s *Source) Updates() <-chan Groups {
	return s.manager.SyncCh()
}

// Close stops all mechanisms.
func (s *Source) Close() {
	s.cancel()
	s.done.Wait()
	for range s.manager.SyncCh() { // until the manager's sender has gone
	}
}
