// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"errors"
	"fmt"

	promconfig "github.com/prometheus/prometheus/config"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/allocator"
)

// An offer is what a target allocator would have the jobs be, besides those of the configuration.
type offer struct {
	jobs   []*promconfig.ScrapeConfig
	answer chan error // has room for the one
}

// newAllocator makes the client of the target allocator, if there is one.
func (r *scraper) newAllocator(ctx context.Context, host component.Host) error {
	if !r.cfg.TargetAllocator.HasValue() {
		return nil
	}
	client, err := allocator.New(ctx, *r.cfg.TargetAllocator.Get(), r.cfg.Prometheus.global(), host, r.settings.TelemetrySettings)
	if err != nil {
		return fmt.Errorf("cannot use `target_allocator`: %w", err)
	}
	r.allocator = client
	return nil
}

// allocate passes on what the target allocator says, until the receiver no longer follows it.
func (r *scraper) allocate() {
	r.allocator.Run(r.following, func(jobs []*promconfig.ScrapeConfig) error {
		o := offer{jobs: jobs, answer: make(chan error, 1)}
		select {
		case r.offers <- o:
			return <-o.answer
		case <-r.following.Done():
			return r.following.Err()
		}
	})
}

// accept applies an offer, or changes nothing.
func (r *scraper) accept(own, offered []*promconfig.ScrapeConfig) error {
	var errs []error
	jobs := make([]*promconfig.ScrapeConfig, 0, len(offered))
	for _, job := range offered {
		job, err := complete(job, r.cfg.MaxBodySize)
		jobs = append(jobs, job)
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if err == nil {
		err = r.apply(own, jobs)
	}
	r.count(err)
	return err
}
